"""Environments for batches of episodes, with their rendering, seeds and action spaces."""
