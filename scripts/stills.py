"""Draw the stills of a run: a poster, a contact sheet, and a short animated preview.

Poster and preview show the median episode. The contact sheet shows episodes from the lowest to the
highest return, or reaches from the shortest to the longest.
"""

from goalreel.stage_program import Shards, stage

_ROWS, _MAX_ROWS = 8, 20


@stage
def stills(spec, frames: Shards, trajectories: Shards, poster, contact_sheet, preview, sums):
    from goalreel import cli
    from goalreel.arrays import spread
    from goalreel.files.atomic import replacing
    from goalreel.provenance.checksums import write_sums
    from goalreel.views.contact_sheet import draw_sheet
    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.poster import draw_poster
    from goalreel.views.preview import preview as encode_preview
    from goalreel.views.triggers import select_episodes
    from goalreel.views.view_files import write_png

    filmed = read_filmed(trajectories, frames, spec.config["env"], spec.config["unit"])
    trigger = spec.config["stills"]["episode_trigger"]
    chosen = select_episodes(trigger, filmed.rows).tolist()
    if trigger is None:
        chosen = spread(filmed.ranking(), _ROWS)
    elif not chosen:
        cli.say(f"warning: stills.episode_trigger: No episode matches '{trigger}'. All are shown.")
        chosen = range(len(filmed))
    median, fps = filmed.median(), spec.config["film.fps"]
    data, summary = encode_preview(median.cache, median.frames, fps, spec.text)
    write_png(poster, draw_poster(filmed), spec.text)
    write_png(contact_sheet, draw_sheet(filmed, chosen[:_MAX_ROWS]), spec.text)
    with replacing(preview) as temporary:
        temporary.write_bytes(data)
    write_sums(sums, [poster, contact_sheet, preview], spec)
    return f"poster, contact sheet; preview: {summary}"
