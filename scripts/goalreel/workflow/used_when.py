"""The modules that only some runs use. An edit of one reruns nothing in other runs."""

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.environments.registry import CLASSIC_CONTROL
from goalreel.policies.parameters import RECORDED
from goalreel.workflow.run import Run

_GYMNASIUM = "environments.gymnasium_env environments.gymnasium_instance"
# Gymnasium's modules by those that draw their environments.
_BOX2D = ("bipedal_walker", "car_racing", "lunar_lander")
_SCENES = {f"environments.drawing.{name}": f"gymnasium.envs.box2d.{name}" for name in _BOX2D}
_SCENES["environments.drawing.mujoco_scene"] = "gymnasium.envs.mujoco"


def excluded_modules(run: Run) -> list[str]:
    """Return the full names of the modules that stages of this run import but do not use."""
    is_computed, is_trained = run.env.computed, run.policy == "trained"
    replays = run.policy in RECORDED or run.select is not None
    is_classic = run.config["env"] in CLASSIC_CONTROL
    played = "" if is_computed else str(find_spec(run.config["env"]).entry_point)
    is_own = not is_computed and not played.startswith("gymnasium.envs.")  # it may derive from one
    is_used = {
        "policies.network_file policies.trained_policy policies.preprocessing": is_trained,
        "policies.user_function": run.policy == "python",
        "policies.onnx_policy": run.policy == "onnx",
        "policies.stable_baselines3 policies.sb3_network": run.policy == "sb3",
        "policies.numpy_network": is_trained or run.policy == "sb3",
        "simulation.played_episodes": run.select is not None,
        "simulation.recorded_episodes simulation.recording_file": replays,
        # It shows a network the environments that goalreel steps.
        "rendering.warped": is_computed and is_trained,
        "rendering.frame_recorder": not is_computed,
        # A user's function may ask for Gymnasium's spaces.
        _GYMNASIUM: not is_computed or run.policy == "python",
        "environments.classic_control rendering.classic_control_scene": is_classic,
        **{scene: is_own or played.startswith(module) for scene, module in _SCENES.items()},
        "encoding.assembling.block_samples": run.encoder.settings["encoder"] == "blocks",
        "encoding.assembling.segment_samples": run.encoder.assembled,
    }
    unused = [name for names, used in is_used.items() if not used for name in names.split()]
    return [f"goalreel.{name}" for name in unused]
