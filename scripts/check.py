"""Compare episodes that were played again with those of the lock file."""

from goalreel.stage_program import Shards, stage


@stage
def check(
    spec, trajectories: Shards, frames: Shards, episodes, tables, summary, output, attempts=None
):
    from goalreel.errors import GoalreelError
    from goalreel.files.atomic import write_text
    from goalreel.verification.check_result import check_run, film_changes

    video, after = output.with_name("before_after.mp4"), output.parent
    video.unlink(missing_ok=True)
    result = check_run(spec.config["check"], spec, trajectories, frames)
    if not result:
        raise GoalreelError(str(film_changes(result, after.parent, after, video, spec)))
    write_text(output, f"{result}\n")
    return str(result)
