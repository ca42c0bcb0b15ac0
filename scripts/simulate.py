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
    options.add_argument("--max-attempts", type=int, default=100, help="episodes for one reach")
    options.add_argument("output", type=Path, help="the trajectory file to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.physics import ENVIRONMENTS
    from goalreel.policies import make_policy
    from goalreel.reaches import simulate_reaches
    from goalreel.trajectories import write_trajectories

    spec = program.spec_of(arguments)
    first, count = spec.shard["first"], spec.shard["count"]
    trajectories = simulate_reaches(
        range(first, first + count),
        spec.config["seed"],
        ENVIRONMENTS[spec.config["env"]],
        make_policy(spec.config["policy"]),
        arguments.max_attempts,
        spec.config["film.show"],
        spec.text,
    )
    write_trajectories(arguments.output, trajectories)
    program.say(
        f"{count} reaches in {len(trajectories.attempts.reach)} episodes, "
        f"{len(trajectories)} of them for the film with {len(trajectories.states)} states"
    )


if __name__ == "__main__":
    program.run(main)
