"""Write goalreel.lock, the behavior of a run's episodes, with which `check` compares new ones."""

from goalreel.stage_program import Shards, stage


@stage
def lock(spec, trajectories: Shards, frames: Shards, tables, output):
    from pathlib import Path

    from goalreel.errors import format_bytes, pluralize
    from goalreel.files.atomic import write_text
    from goalreel.verification.behavior import lock_run

    path, made = spec.config["check.file"], lock_run(spec, trajectories, frames)
    text = made.text()
    for target in (output, Path(path)):
        write_text(target, text)
    count, size = pluralize(len(made.episodes), "episode"), format_bytes(len(text.encode()))
    return f"{count} in {path} ({size}), every {made.stride} steps"
