"""The modules that only some runs use. An edit of one reruns nothing in other runs."""

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.environments.registry import CLASSIC_CONTROL
from goalreel.policies.parameters import RECORDED
from goalreel.workflow.run import Run

# Modules of environments/drawing, and Gymnasium's modules whose environments they draw.
_SCENES = {
    "bipedal_walker": "gymnasium.envs.box2d.bipedal_walker",
    "car_racing": "gymnasium.envs.box2d.car_racing",
    "lunar_lander": "gymnasium.envs.box2d.lunar_lander",
    "mujoco_scene": "gymnasium.envs.mujoco",
}


def excluded_modules(run: Run) -> list[str]:
    """Return the full names of the modules that stages of this run import but do not use."""
    is_computed, is_trained = run.env.computed, run.policy == "trained"
    replays = run.policy in RECORDED or run.select is not None
    is_classic = run.config["env"] in CLASSIC_CONTROL
    played = "" if is_computed else str(find_spec(run.config["env"]).entry_point)
    is_own = not is_computed and not played.startswith("gymnasium.envs.")  # it may derive from one
    is_used = {
        "policies.network_file": is_trained,
        "policies.user_function": run.policy == "python",
        "policies.onnx_policy": run.policy == "onnx",
        "policies.stable_baselines3": run.policy == "sb3",
        "policies.sb3_network": run.policy == "sb3",
        "policies.trained_policy": is_trained,
        "policies.numpy_network": is_trained or run.policy == "sb3",
        "policies.preprocessing": is_trained,
        "simulation.played_episodes": run.select is not None,
        "simulation.recorded_episodes": replays,
        "simulation.recording_file": replays,
        # It shows a network the environments that goalreel steps.
        "rendering.warped": is_computed and is_trained,
        "rendering.frame_recorder": not is_computed,
        # A user's function may ask for Gymnasium's spaces.
        "environments.gymnasium_env": not is_computed or run.policy == "python",
        "environments.classic_control": is_classic,
        "rendering.classic_control_scene": is_classic,
        **{
            f"environments.drawing.{scene}": is_own or played.startswith(module)
            for scene, module in _SCENES.items()
        },
        "encoding.assembling.block_samples": run.encoder.settings["encoder"] == "blocks",
        "encoding.assembling.segment_samples": run.encoder.assembled,
    }
    return [f"goalreel.{module}" for module, used in is_used.items() if not used]
