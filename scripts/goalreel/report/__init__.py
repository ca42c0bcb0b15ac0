"""Plots, the page that plays the film, and the comparison of two runs."""
