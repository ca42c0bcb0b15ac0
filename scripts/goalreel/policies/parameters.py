"""The environments that each policy plays, and the parameters that it takes there.

The Snakefile imports this module, so it does not import NumPy.
"""

from collections.abc import Mapping

# Environments, by id or its prefix. "*" stands for all others.
_CAR, _CONTINUOUS, _OTHERS = "MountainCar-v0", "MountainCarContinuous-v0", "*"
_ALE, _MARIO = "ALE/", "SuperMarioBros-"
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "pump": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon", "force")},
    "near_optimal": {_CAR: ("epsilon",)},
    "random": {_CAR: ("epsilon",), _CONTINUOUS: ("epsilon",), _OTHERS: ()},
    "python": {_OTHERS: ("file", "function", "extra_files", "batch")},
    "recording": {_OTHERS: ("file",)},
    "minari": {_OTHERS: ("dataset", "allow")},
    "onnx": {_OTHERS: ("file", "extra_files")},
    "sb3": {_OTHERS: ("file", "algorithm", "vecnormalize", "deterministic", "safe", "batch")},
    "trained": {_OTHERS: ("file", "checkpoint")},
}
# The policy that plays a file with such a suffix.
POLICY_FILES = {".py": "python", ".zip": "sb3", ".onnx": "onnx"}
# Policies that replay recorded episodes, each from its own seed.
RECORDED = ("recording", "minari")
MAX_FILMED_CHECKPOINTS = 5
# Algorithms of Stable-Baselines3 models, and the package of each.
ALGORITHMS = dict.fromkeys(("PPO", "DQN", "A2C", "SAC", "TD3", "DDPG"), "stable-baselines3")
ALGORITHMS |= dict.fromkeys(
    ("TQC", "TRPO", "ARS", "QRDQN", "CrossQ", "MaskablePPO", "RecurrentPPO"), "sb3-contrib"
)
# Arguments of a game's environment for a network: one step is one frame, as in training.
PIXEL_KWARGS = {_ALE: {"frameskip": 1, "obs_type": "grayscale"}, _MARIO: {"obs_type": "rgb"}}
# Values of parameters that labels omit; None of others.
_DEFAULTS = {"function": "act", "allow": [], "deterministic": True, "safe": False}


def parameters(policy: str, env: str) -> tuple[str, ...] | None:
    """Return the parameters that a policy takes in an environment, None if it cannot play it."""
    by_env = PARAMETERS[policy]
    return by_env.get(env, by_env.get(_OTHERS))


def pixel_kwargs(env: str) -> Mapping:
    """Return the arguments that an environment needs for a network that sees pixels."""
    name = env.rpartition(":")[2]
    return next((given for start, given in PIXEL_KWARGS.items() if name.startswith(start)), {})


def is_trained_here(policy: Mapping) -> bool:
    """Return whether the run itself trains the policy of this `policy` section."""
    return policy["name"] == "trained" and policy.get("file") is None


def policy_label(policy: Mapping) -> str:
    """Return a policy's label, such as "sb3 ppo.zip, algorithm PPO", without defaults."""
    name = " ".join(str(policy[key]) for key in ("name", "file") if policy.get(key) is not None)
    others = (
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in policy.items()
        if key not in ("name", "file", "extra_files") and value != _DEFAULTS.get(key)
    )
    return ", ".join([name, *others])
