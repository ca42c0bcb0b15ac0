"""Write the report: a web page that plays the film, lists its episodes and shows the plots."""

from goalreel.stage_program import Shards, stage


@stage
def report(
    spec,
    film,
    episodes,
    tables,
    summary,
    plots,
    trajectories,
    frames,
    segments,
    output,
    attempts=None,
    atlas=None,
    grid=None,
    swarm=None,
    training_progress=None,
    signals: Shards = None,
):
    from goalreel.provenance.checksums import SUMS, read_sums
    from goalreel.report.page import Sources, write_report
    from goalreel.workflow.stages import FILM

    plot_paths = list(read_sums(plots / SUMS))
    views = {"Swarm": swarm, "Grid": grid, "Training progress": training_progress}
    views = {title: path for title, path in views.items() if path}
    stages = trajectories, atlas, frames, segments, film, tables, *views.values(), plot_paths[0]
    sources = Sources(
        film=film,
        tables=[path for path in (episodes, attempts) if path],
        plots=plot_paths,
        frames=frames,
        signals=signals or (),
        summary=summary,
        views=views,
        artifacts=[path for path in stages if path],
        stages=list(FILM),
    )
    return f"{write_report(output, sources, spec)} episodes"
