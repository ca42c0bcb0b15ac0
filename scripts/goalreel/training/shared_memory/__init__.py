"""Blocks, rings and weights in memory that processes share."""
