"""Make clips, the grid, the swarm, the phase plane, stills and the film of learning."""
