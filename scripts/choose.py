"""Choose the episodes to film from all that were played, and write the table of all."""

from goalreel.stage_program import Shards, stage


@stage
def choose(spec, played: Shards, output, table, sums):
    import numpy as np

    from goalreel.errors import pluralize
    from goalreel.files.atomic import write_text
    from goalreel.films.tables import write_played_table
    from goalreel.provenance.checksums import with_digests
    from goalreel.report.statistics import share_interval
    from goalreel.report.summary import reward_threshold
    from goalreel.simulation.played_episodes import Selection, read_played, write_selection
    from goalreel.views.selection import choose_episodes

    episodes = read_played(played)
    selection = spec.config["selection"]
    success = selection["success"]
    success = reward_threshold(spec.config["env"]) if success is None else success
    success = "terminated" if success is None else success
    numbers, alike = choose_episodes(selection["select"], success, episodes)
    intervals = [share_interval(count, len(episodes)) for count in alike.tolist()]
    shares = np.array([(share.value, share.low, share.high) for share in intervals])
    write_selection(output, Selection(episodes.rows.take(numbers), shares, len(episodes)), spec)
    write_played_table(table, episodes.rows, numbers, spec.config["env"])
    write_text(sums, with_digests(spec, [table]))
    return f"{len(numbers):,} of {pluralize(len(episodes), 'episode')}"
