"""Train a policy: SARSA(lambda) with tile coding learns MountainCar-v0; its checkpoints are saved.

By hand:

    python scripts/train.py policy.npz log.csv SHA256SUMS --spec '{"stage": "train",
        "config": {"env": "MountainCar-v0", "train.seed": 7,
        "train.checkpoints": [1, 10, 50, 100, 250]}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "train")
    options.add_argument("policy", type=Path, help="the policy file to write, .npz")
    options.add_argument("log", type=Path, help="the table of training episodes, .csv")
    options.add_argument("sums", type=Path, help="the checksum of the table to write")
    arguments = options.parse_args(argv)

    from goalreel.environments.physics import DISCRETE
    from goalreel.errors import GoalreelError
    from goalreel.policies.tile_policy import write_policies
    from goalreel.provenance.checksums import write_sums
    from goalreel.training.sarsa import train, write_log

    spec = spec_of(arguments)
    if spec.config["env"] != DISCRETE.id:
        raise GoalreelError(f"only {DISCRETE.id} can be learned, not {spec.config['env']}")
    policies = train(spec.config["train.seed"], spec.config["train.checkpoints"], spec)
    write_policies(arguments.policy, policies)
    write_log(arguments.log, policies.log)
    write_sums(arguments.sums, [arguments.log])
    cli.say(
        f"{len(policies.log.episode)} episodes of {int(policies.log.steps.sum())} steps, "
        f"{int(policies.log.reached.sum())} of them reached the goal; "
        f"checkpoints after {', '.join(map(str, policies.ages.tolist()))}"
    )


if __name__ == "__main__":
    cli.run(main)
