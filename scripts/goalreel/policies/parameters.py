"""Which policy plays which environment, and the parameters that it takes there.

Imported while the Snakefile is parsed, so without NumPy.
"""

_CAR, _CONTINUOUS, _OTHERS = "MountainCar-v0", "MountainCarContinuous-v0", "*"
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "pump": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon", "force")},
    "near_optimal": {_CAR: ("epsilon",)},
    "random": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon",), _OTHERS: ()},
    "file": {_OTHERS: ("file", "function", "files", "batch")},
    "recorded": {_OTHERS: ("file",)},
    "sb3": {_OTHERS: ("file", "algorithm", "normalize", "deterministic")},
    "sarsa": {_CAR: ("epsilon",)},
    "dqn": {_CAR: ("epsilon", "variant", "checkpoint")},
}
# Those that are trained here, whose checkpoints `learning` films.
LEARNERS = ("sarsa", "dqn")
# The algorithms whose models are played, and the package that each is of.
ALGORITHMS = dict.fromkeys(("PPO", "DQN", "A2C", "SAC", "TD3", "DDPG"), "stable-baselines3")
ALGORITHMS |= dict.fromkeys(
    ("TQC", "TRPO", "ARS", "QRDQN", "CrossQ", "MaskablePPO", "RecurrentPPO"), "sb3-contrib"
)


def parameters(policy: str, env: str) -> tuple[str, ...] | None:
    """Return the parameters that a policy takes in an environment, None if it does not play it."""
    by_env = PARAMETERS[policy]
    return by_env.get(env, by_env.get(_OTHERS))
