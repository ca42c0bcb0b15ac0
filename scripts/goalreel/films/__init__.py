"""Segments, their concatenation, parts of a film and the tables."""
