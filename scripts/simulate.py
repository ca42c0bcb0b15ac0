"""Simulate one shard: play its reaches' episodes and write their trajectories.

By hand, the first 20 reaches:

    python scripts/simulate.py trajectories.npz --spec '{"stage": "simulate",
        "config": {"env": "MountainCar-v0", "seed": 2025, "film.show": "reaches",
        "policy": {"name": "pump", "epsilon": 0}}, "shard": {"first": 0, "count": 20}}'
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = program.stage_parser(__doc__, "simulate")
    options.add_argument("--policy", type=Path, nargs="?", help="the trainer's, for sarsa and dqn")
    options.add_argument("--max-attempts", type=int, default=100, help="episodes for one reach")
    options.add_argument("output", type=Path, help="the trajectory file to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.environments import environment_files
    from goalreel.episodes import make_environment
    from goalreel.made_of import check_inputs
    from goalreel.policies import make_policy
    from goalreel.policy_files import check_files, policy_files
    from goalreel.reaches import simulate_reaches
    from goalreel.recorded import play_recording
    from goalreel.recording import read_recording
    from goalreel.trajectories import write_trajectories

    spec = program.spec_of(arguments)
    check_inputs(spec, train=arguments.policy, dqn=arguments.policy)
    first, count = spec.shard["first"], spec.shard["count"]
    reaches, environment = range(first, first + count), make_environment(spec.config)
    policy, success = spec.config["policy"], spec.config.get("success", "terminated")
    check_files(spec.text, policy_files(policy) | environment_files(spec.config["env"]))
    if policy["name"] == "recorded":
        recording = read_recording(policy["file"])
        trajectories = play_recording(recording, reaches, environment, spec.text, success)
    else:
        trajectories = simulate_reaches(
            reaches,
            spec.config["seed"],
            environment,
            make_policy(policy, arguments.policy),
            arguments.max_attempts,
            spec.config["film.show"],
            spec.text,
            success,
        )
    write_trajectories(arguments.output, trajectories)
    program.say(
        f"{count} reaches in {len(trajectories.attempts.reach)} episodes, "
        f"{len(trajectories)} of them for the film with {len(trajectories.states)} states"
    )


if __name__ == "__main__":
    program.run(main)
