"""Train a policy by deep Q-learning: one variant of the settings, from one seed.

By hand, where PyTorch is installed (requirements-train.in):

    python scripts/dqn.py policy.pt log.csv metrics.json --spec '{"stage": "dqn", "config":
        {"env": "MountainCar-v0", "dqn.decisions": 20000, "dqn.double": false,
        "variant": "baseline", "train.seed": 1}}'
"""

import os
from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser
from goalreel.training.shared_memory.child_process import ONE_THREAD


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "dqn")
    options.add_argument("policy", type=Path, help="the checkpoints to write, .pt")
    options.add_argument("log", type=Path, help="the table of episodes to write, .csv")
    options.add_argument("metrics", type=Path, help="the metrics to write, .json")
    arguments = options.parse_args(argv)
    os.environ |= ONE_THREAD  # NumPy's, which evaluates policies; it is imported below

    from goalreel.environments.physics import DISCRETE
    from goalreel.errors import GoalreelError
    from goalreel.files.atomic import write_text
    from goalreel.policies.network_file import Checkpoints, write_checkpoints
    from goalreel.policies.pytorch import import_torch
    from goalreel.training.dqn.metrics import csv_of, write_metrics
    from goalreel.training.dqn.settings import settings_of

    spec = spec_of(arguments)
    if spec.config["env"] != DISCRETE.id:
        raise GoalreelError(f"only {DISCRETE.id} can be learned, not {spec.config['env']}")
    import_torch("to train").set_num_threads(1)  # the same weights, whatever the machine's cores
    from goalreel.training.dqn.training import COLUMNS, train

    variant, seed = spec.config["variant"], spec.config["train.seed"]
    settings = settings_of(variant, spec.config["dqn.decisions"], spec.config["dqn.double"])
    if not settings.deterministic:
        cli.say(f"{variant}: two processes, each at its own pace; no two runs are the same")
    trained = train(settings, variant, seed)
    metrics = trained.metrics
    write_text(arguments.log, csv_of(COLUMNS, trained.episodes))
    evaluated = (metrics.checkpoints, metrics.means, trained.weights)
    write_checkpoints(arguments.policy, Checkpoints(settings.hidden, *evaluated, spec))
    write_metrics(arguments.metrics, metrics, spec, arguments.log)
    cli.say(str(metrics))


if __name__ == "__main__":
    cli.run(main)
