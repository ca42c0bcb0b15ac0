"""Which policy plays which environment, and the parameters that it takes there.

Imported while the Snakefile is parsed, so without NumPy.
"""

from collections.abc import Mapping

# By the environment's id, or how it begins; "*" are all others.
_CAR, _CONTINUOUS, _ALE, _OTHERS = "MountainCar-v0", "MountainCarContinuous-v0", "ALE/", "*"
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "pump": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon", "force")},
    "near_optimal": {_CAR: ("epsilon",)},
    "random": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon",), _OTHERS: ()},
    "file": {_OTHERS: ("file", "function", "files", "batch")},
    "recorded": {_OTHERS: ("file",)},
    "sb3": {_OTHERS: ("file", "algorithm", "normalize", "deterministic")},
    "sarsa": {_CAR: ("epsilon",)},
    "dqn": {_CAR: ("epsilon", "variant", "checkpoint")},
    "pixels": dict.fromkeys((_CAR, _ALE), ("file", "checkpoint")),
}
# Those whose checkpoints `learning` films, and all that a run trains.
LEARNERS = ("sarsa", "dqn")
TRAINED = (*LEARNERS, "pixels")
# The algorithms whose models are played, and the package that each is of.
ALGORITHMS = dict.fromkeys(("PPO", "DQN", "A2C", "SAC", "TD3", "DDPG"), "stable-baselines3")
ALGORITHMS |= dict.fromkeys(
    ("TQC", "TRPO", "ARS", "QRDQN", "CrossQ", "MaskablePPO", "RecurrentPPO"), "sb3-contrib"
)
# What a game of ALE is made with for a network: a step is a frame, which shows what it learned on.
PIXEL_KWARGS = {"frameskip": 1, "obs_type": "grayscale", "repeat_action_probability": 0.0}


def parameters(policy: str, env: str) -> tuple[str, ...] | None:
    """Return the parameters that a policy takes in an environment, None if it does not play it."""
    by_env = PARAMETERS[policy]
    family = _ALE if env.startswith(_ALE) and _ALE in by_env else _OTHERS
    return by_env.get(env, by_env.get(family))


def is_trained_here(policy: Mapping) -> bool:
    """Tell whether a run trains the policy that plays; policy: that section."""
    return policy["name"] in TRAINED and policy.get("file") is None
