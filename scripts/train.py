"""Train a policy by deep Q-learning (DQN) or proximal policy optimization (PPO).

Ctrl-C or SIGTERM saves the state in --saved, with the table next to it, and stops. The same command
resumes.
"""

from goalreel.stage_program import stage


@stage
def train(spec, policy, table, metrics, plot, saved):
    from goalreel.training import training
    from goalreel.training.progress import plot_progress

    files = {f"file {name}": digest for name, digest in spec.value.get("files", {}).items()}
    trained = training.train(spec.config, saved, {"code": spec.code, **files})
    summary = training.write_results(policy, table, metrics, trained, spec)
    plot_progress(plot, trained.record.rows, spec.config["env"], spec.text)
    saved.unlink(missing_ok=True)
    return summary
