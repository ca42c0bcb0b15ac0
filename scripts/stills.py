"""Draw a run's stills: a poster, a contact sheet, and a short animated preview.

Poster and preview show the median episode, the contact sheet episodes from the least to the
greatest return (of reaches, from the shortest to the longest).
"""

from goalreel.stage_program import Shards, stage

_ROWS, _MOST = 8, 20


@stage
def stills(spec, frames: Shards, trajectories: Shards, poster, contact_sheet, preview, sums):
    from goalreel import cli
    from goalreel.provenance.checksums import write_sums
    from goalreel.views.filmed_episodes import read_filmed, spread
    from goalreel.views.stills import save_contact_sheet, save_poster, save_preview

    filmed = read_filmed(trajectories, frames, spec.config["env"], spec.config["unit"])
    save_poster(filmed, poster, spec.text)
    trigger = spec.config["stills"]["episode_trigger"]
    chosen = spread(filmed.ranked(), _ROWS) if trigger is None else filmed.chosen(trigger)
    if not chosen:
        cli.say(f"warning: stills.episode_trigger {trigger} selects no episode, so all are shown")
        chosen = filmed.places
    save_contact_sheet(filmed, contact_sheet, chosen[:_MOST], spec.text)
    summary = save_preview(filmed, preview, spec.config["film.fps"], spec.text)
    write_sums(sums, [poster, contact_sheet, preview])
    return f"poster, contact sheet; preview: {summary}"
