"""Make clips, the grid, the swarm, stills and the film of learning."""
