"""Which policy plays which environment, and the parameters that it takes there.

Imported while the Snakefile is parsed, so without NumPy.
"""

from collections.abc import Mapping

# By the environment's id, or how it begins; "*" are all others.
_CAR, _CONTINUOUS, _OTHERS = "MountainCar-v0", "MountainCarContinuous-v0", "*"
_ALE, _MARIO = _FAMILIES = "ALE/", "SuperMarioBros-"
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "pump": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon", "force")},
    "near_optimal": {_CAR: ("epsilon",)},
    "random": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon",), _OTHERS: ()},
    "python": {_OTHERS: ("file", "function", "extra_files", "batch")},
    "recording": {_OTHERS: ("file",)},
    "minari": {_OTHERS: ("dataset", "allow")},
    "sb3": {_OTHERS: ("file", "algorithm", "vecnormalize", "deterministic")},
    "dqn": {_CAR: ("epsilon", "variant", "checkpoint")},
    "pixels": dict.fromkeys((_CAR, _ALE, _MARIO), ("file", "checkpoint")),
}
# Those that play episodes as they were recorded, each from its own seed.
RECORDED = ("recording", "minari")
# Those that a run trains, whose checkpoints `training_progress` films.
LEARNERS = ("dqn", "pixels")
MAX_FILMED_CHECKPOINTS = 5  # checkpoints of a network that are filmed
# The algorithms whose models are played, and the package that each is of.
ALGORITHMS = dict.fromkeys(("PPO", "DQN", "A2C", "SAC", "TD3", "DDPG"), "stable-baselines3")
ALGORITHMS |= dict.fromkeys(
    ("TQC", "TRPO", "ARS", "QRDQN", "CrossQ", "MaskablePPO", "RecurrentPPO"), "sb3-contrib"
)
# What a game is made with for a network: a step is a frame, which shows what it learned on.
PIXEL_KWARGS = {
    _ALE: {"frameskip": 1, "obs_type": "grayscale", "repeat_action_probability": 0.0},
    _MARIO: {"obs_type": "rgb"},
}


def parameters(policy: str, env: str) -> tuple[str, ...] | None:
    """Return the parameters that a policy takes in an environment, None if it does not play it."""
    by_env = PARAMETERS[policy]
    return by_env.get(env, by_env.get(_family(env), by_env.get(_OTHERS)))


def pixel_kwargs(env: str) -> Mapping:
    """Return the arguments that an environment is made with for a network of pixels."""
    return PIXEL_KWARGS.get(_family(env), {})


def _family(env: str) -> str:
    return next(filter(env.startswith, _FAMILIES), "")


def is_trained_here(policy: Mapping) -> bool:
    """Tell whether a run trains the policy that plays; policy: that section."""
    return policy["name"] in LEARNERS and policy.get("file") is None
