"""Plots, the page that plays the film, the model card, and the comparison of two runs."""
