"""Environments that are stepped side by side, drawing, seeds and action spaces."""
