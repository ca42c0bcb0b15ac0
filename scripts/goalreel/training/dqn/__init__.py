"""Deep Q-learning of MountainCar-v0 from its state: settings, environments, training, policies."""
