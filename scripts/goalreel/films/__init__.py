"""Render, encode and join the segments of a film, and write its tables."""
