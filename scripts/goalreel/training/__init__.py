"""Training of policies: a closed house, from which filming imports nothing."""
