"""Deep Q-learning from pixels: collectors, replay buffer and learner."""
