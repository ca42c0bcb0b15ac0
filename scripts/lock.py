"""Write goalreel.lock, the behavior of a run's episodes, with which `check` compares new ones."""

from goalreel.stage_program import Shards, stage


@stage
def lock(
    spec, trajectories: Shards, frames: Shards, episodes, tables, summary, output, attempts=None
):
    from pathlib import Path

    from goalreel.errors import format_bytes, pluralize
    from goalreel.files.atomic import write_text
    from goalreel.verification.behavior import lock_run

    path, made = Path(spec.config["check.file"]), lock_run(spec, trajectories, frames)
    for target in (output, path):
        write_text(target, made.text())
    size = format_bytes(path.stat().st_size)
    return f"{pluralize(len(made.episodes), 'episode')} in {path}, {size}"
