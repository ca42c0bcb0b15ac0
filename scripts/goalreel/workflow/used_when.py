"""The modules that only some runs use. An edit of one reruns nothing in other runs."""

from collections.abc import Callable

from goalreel.environments.registry import CLASSIC_CONTROL
from goalreel.policies.parameters import RECORDED
from goalreel.workflow.run import Run


def _plays(*policies: str) -> Callable[[Run], bool]:
    return lambda run: run.policy in policies


def _plays_gymnasium(run: Run) -> bool:
    return not run.env.computed


def _steps_classic_control(run: Run) -> bool:
    return run.config["env"] in CLASSIC_CONTROL


def _replays(run: Run) -> bool:
    return run.policy in RECORDED or run.select is not None


_NETWORK = _plays("trained")
USED_WHEN: dict[str, Callable[[Run], bool]] = {
    "goalreel.policies.network_file": _NETWORK,
    "goalreel.policies.user_function": _plays("python"),
    "goalreel.policies.stable_baselines3": _plays("sb3"),
    "goalreel.policies.trained_policy": _NETWORK,
    "goalreel.policies.numpy_network": _NETWORK,
    "goalreel.policies.preprocessing": _NETWORK,
    "goalreel.simulation.played_episodes": lambda run: run.select is not None,
    "goalreel.simulation.minari_episodes": _replays,
    "goalreel.simulation.recorded_episodes": _replays,
    "goalreel.simulation.recording_file": _replays,
    "goalreel.simulation.recording_blocks": _replays,
    # It shows a network the environments that goalreel steps.
    "goalreel.rendering.warped": lambda run: run.env.computed and run.policy == "trained",
    "goalreel.rendering.frame_recorder": _plays_gymnasium,
    # A user's function may ask for Gymnasium's spaces.
    "goalreel.environments.gymnasium_env": lambda r: not r.env.computed or r.policy == "python",
    "goalreel.environments.classic_control": _steps_classic_control,
    "goalreel.rendering.classic_control_scene": _steps_classic_control,
    "goalreel.encoding.assembling.block_samples": lambda run: (
        run.encoder.settings["encoder"] == "blocks"
    ),
    "goalreel.encoding.assembling.segment_samples": lambda run: run.encoder.assembled,
}


def excluded_modules(run: Run) -> list[str]:
    """Return the full names of the modules that stages of this run import but do not use."""
    return [module for module, is_used in USED_WHEN.items() if not is_used(run)]
