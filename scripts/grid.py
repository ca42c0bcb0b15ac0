"""Film all episodes side by side, in pages of rows and columns, as one video."""

from goalreel.stage_program import Shards, stage


@stage
def grid(spec, frames: Shards, trajectories: Shards, output):
    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.grid import film_grid

    filmed = read_filmed(trajectories, frames, spec.config["env"], spec.config["unit"])
    count, pages = film_grid(filmed, output, spec)
    return f"{count} frames" + f" on {pages} pages" * (pages > 1)
