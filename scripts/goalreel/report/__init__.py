"""Plots, and the page that plays the film."""
