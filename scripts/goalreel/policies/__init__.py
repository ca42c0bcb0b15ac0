"""Rules, user functions, Stable-Baselines3, tile and network policies, and how each is read."""
