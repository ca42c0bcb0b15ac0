"""Record episodes with plain Gymnasium, to film them with `policy: {name: recording}`.

    python examples/record.py recording.csv

A row holds the episode, the id of the environment, the seed given to `reset`, and the action of one
step. goalreel plays the same steps again. Put an action of several numbers into the columns
action_0, action_1, ...
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
            action = int(observation[2] > 0)  # replace by your policy, or by a person's key
            rows.writerow([episode, env.spec.id, seed, action])
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
