"""Clips, grid, swarm, phase plane, stills and the film of learning."""
