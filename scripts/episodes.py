"""Write the tables: episodes.csv with a row per filmed episode, and for reaches attempts.csv.

summary.json has the means with their intervals, and the worst episodes.
"""

from goalreel.stage_program import Shards, stage


@stage
def episodes(
    spec,
    trajectories: Shards,
    episodes,
    tables,
    summary,
    attempts=None,
    selection=None,
    played=None,
):
    from goalreel.files.atomic import write_text
    from goalreel.films.tables import write_tables
    from goalreel.provenance.checksums import with_digests
    from goalreel.report.summary import write_summary
    from goalreel.simulation.played_episodes import read_selection

    how = (spec.config[key] for key in ("env", "film.fps", "card_frames"))
    chosen = read_selection(selection) if selection else None
    shown = write_tables(trajectories, episodes, attempts, *how, chosen, spec.remarks)
    write_summary(summary, trajectories, episodes, attempts or played, spec)
    files = [path for path in (episodes, attempts, summary) if path]
    write_text(tables, with_digests(spec, files))
    return shown
