"""Deep Q-learning from pixels: collectors, their rings, the replay buffer and the learner."""
