"""Deep Q-learning of MountainCar-v0 from its state."""
