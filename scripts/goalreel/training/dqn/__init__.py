"""Deep Q-learning of MountainCar-v0 from its state: settings, training, comparison of variants."""
