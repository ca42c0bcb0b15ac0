"""Policies: rules, user functions, Stable-Baselines3 models and trained networks."""
