"""Train a policy for MountainCar-v0 by SARSA(lambda) with tile coding, and keep its checkpoints."""

from goalreel.stage_program import stage


@stage
def train(spec, policy, table, sums):
    from goalreel.environments.physics import DISCRETE
    from goalreel.errors import GoalreelError
    from goalreel.policies.tile_policy import write_policies
    from goalreel.provenance.checksums import write_sums
    from goalreel.training import sarsa

    if spec.config["env"] != DISCRETE.id:
        raise GoalreelError(f"only {DISCRETE.id} can be learned, not {spec.config['env']}")
    trained = sarsa.train(spec.config["train.seed"], spec.config["train.checkpoints"], spec)
    write_policies(policy, trained)
    sarsa.write_log(table, trained.log)
    write_sums(sums, [table])
    return (
        f"{len(trained.log.episode)} episodes of {int(trained.log.steps.sum())} steps, "
        f"{int(trained.log.reached.sum())} of them reached the goal; "
        f"checkpoints after {', '.join(map(str, trained.ages.tolist()))}"
    )
