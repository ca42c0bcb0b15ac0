"""Games for training: vectorized environments whose observations are pixels."""
