"""Train a policy by deep Q-learning, with one variant of the settings and one seed."""

from goalreel.stage_program import stage


@stage
def dqn(spec, policy, table, metrics):
    import csv
    import os
    from dataclasses import asdict, replace

    from goalreel.training.shared_memory.child_process import ONE_THREAD

    os.environ |= ONE_THREAD  # of NumPy, which evaluates policies and is imported below

    import torch

    from goalreel.files.atomic import replacing, write_text
    from goalreel.policies.network_file import Checkpoints, write_checkpoints
    from goalreel.provenance.checksums import with_digests
    from goalreel.training.dqn.settings import VARIANTS

    torch.set_num_threads(1)  # the same weights for any number of cores
    from goalreel.training.dqn.training import COLUMNS, train

    variant = VARIANTS[spec.config["variant"]]
    settings = replace(variant, total_timesteps=spec.config["dqn.total_timesteps"])
    trained = train(settings, spec.config["train.seed"])
    with replacing(table) as temporary, temporary.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *trained.episodes])
    evaluated = (trained.metrics.checkpoints, trained.metrics.means, trained.weights)
    write_checkpoints(policy, Checkpoints(*evaluated, spec))
    extended = spec.extended(metrics=asdict(trained.metrics))
    write_text(metrics, with_digests(extended, [table]))
    return str(trained.metrics)
