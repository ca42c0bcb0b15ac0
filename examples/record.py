"""Record episodes with plain Gymnasium, for `policy: {name: recorded}`. Play them as you like.

    python examples/record.py recording.csv

Of each step a row holds the episode, the id of the environment, the seed that `reset` was given,
and the action; goalreel plays the same steps again. An action of several numbers goes into the
columns action_0, action_1, ...
"""

import csv
import sys

import gymnasium

env = gymnasium.make("CartPole-v1")
with open(sys.argv[1], "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["episode", "env", "seed", "action"])
    for episode in range(10):
        seed = 1000 + episode
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            action = int(observation[2] > 0)  # here your policy, or a person's key
            rows.writerow([episode, env.spec.id, seed, action])
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
