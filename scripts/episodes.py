"""Write the tables: episodes.csv with a row per filmed episode, and for reaches attempts.csv."""

from goalreel.stage_program import Shards, stage


@stage
def episodes(spec, trajectories: Shards, episodes, tables, attempts=None):
    from goalreel.files.atomic import write_text
    from goalreel.films.tables import write_tables
    from goalreel.provenance.checksums import with_digests

    how = (spec.config[key] for key in ("env", "film.fps", "card_frames"))
    shown = write_tables(trajectories, episodes, attempts, *how)
    write_text(tables, with_digests(spec, [path for path in (episodes, attempts) if path]))
    return shown
