"""Simulate episodes, reaches and recordings, and store them in trajectory files."""
