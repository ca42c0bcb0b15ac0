"""Simulate one shard: play its episodes, or those of its reaches, and write their trajectories.

What Gymnasium plays it also draws, into the shard's frame cache. By hand, the first 20 reaches
(with "success": null, the first 20 episodes):

    python scripts/simulate.py trajectories.npz --spec '{"stage": "simulate",
        "config": {"env": "MountainCar-v0", "seed": 2025, "film.show": "reaches",
        "policy": {"name": "pump", "epsilon": 0}}, "shard": {"first": 0, "count": 20}}'
"""

import contextlib
from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "simulate")
    options.add_argument(
        "--policy", type=Path, nargs="?", help="what a stage made of it: its network, ..."
    )
    options.add_argument("--max-attempts", type=int, default=100, help="attempts at one reach")
    options.add_argument("output", type=Path, help="the trajectory file to write, .npz")
    options.add_argument("--frames", type=Path, nargs="?", help="the frame cache to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.environments.environment import make_environment
    from goalreel.environments.gymnasium_ids import environment_files
    from goalreel.environments.wrappers import wrapper_modules
    from goalreel.errors import counted
    from goalreel.policies.parameters import RECORDED
    from goalreel.policies.policy import make_policy
    from goalreel.policies.watched_files import check_files, policy_files
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.simulation.minari_episodes import read_episodes
    from goalreel.simulation.reaches import simulate_reaches
    from goalreel.simulation.recorded_episodes import play_recording
    from goalreel.simulation.recording_blocks import read_blocks
    from goalreel.simulation.trajectories import write_trajectories

    spec = spec_of(arguments)
    made = arguments.policy
    check_inputs(spec, train=made, dqn=made, pixels=made, recording=made)
    first, count = spec.shard["first"], spec.shard["count"]
    reaches, environment = range(first, first + count), make_environment(spec.config)
    policy, success = spec.config["policy"], spec.config.get("success", "terminated")
    wrappers = wrapper_modules(spec.config.get("env_wrappers") or ())
    # What a data set holds is compared with what is played, and a recording was read before.
    files = {} if policy["name"] in RECORDED else policy_files(policy)
    check_files(spec, files | environment_files(spec.config["env"], wrappers))
    show = spec.config["film.show"]
    film = contextlib.nullcontext()
    if arguments.frames:
        from goalreel.pictures.camera import filming

        everything = policy["name"] in RECORDED or show == "attempts"
        film = filming(arguments.frames, environment, None if everything else success)
    with film as camera:
        if policy["name"] in RECORDED:
            if policy["name"] == "minari":
                recording = read_episodes(policy["dataset"], reaches)
            else:
                label = f"policy.file: {policy['file']}"
                recording = read_blocks(made, reaches, label)
            played = reaches, environment, spec, success, camera
            trajectories = play_recording(recording, *played)
        else:
            player = make_policy(policy, made)
            if policy["name"] == "pixels":
                from goalreel.pictures.warped import watched

                environment = watched(environment, player.warp)
            played = environment, player, arguments.max_attempts, show, spec, success, camera
            seeds = spec.value.get("seeds")
            trajectories = simulate_reaches(reaches, spec.config["seed"], *played, seeds)
        if camera is not None:
            camera.write(trajectories.digest(), spec)
    write_trajectories(arguments.output, trajectories)
    reached = "" if success is None else f"{counted(count, 'reach')} in "
    episodes, frames = len(trajectories.attempts.reach), len(trajectories.states)
    cli.say(f"{reached}{counted(episodes, 'episode')}, {counted(frames, 'frame')}")


if __name__ == "__main__":
    cli.run(main)
