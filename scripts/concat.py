"""Join all segments, padded to one size, into the film, with a chapter for each episode."""

from goalreel.stage_program import Shards, stage


@stage
def concat(spec, segments: Shards, trajectories: Shards, output, selection=None):
    from goalreel.errors import format_bytes, format_duration, pluralize
    from goalreel.films.concatenate import concatenate
    from goalreel.films.padding import padded
    from goalreel.simulation.played_episodes import read_selection

    config, unit = spec.config, spec.config["unit"]
    count = pluralize(spec.shard["reaches"], "goal reach" if unit == "reach" else unit)
    if selection:
        chosen = read_selection(selection)
        count = f"{len(chosen.shares):,} of {pluralize(chosen.played, unit)}"
    title = ", ".join([f"{config['env']}: {count}", *spec.remarks.values()])
    with padded(segments, trajectories, output.parent) as (whole, sizes):
        text = (spec.extended(sizes=sizes) if sizes else spec).text
        how = config["film.fps"], config["card_frames"], unit
        frames = concatenate(whole, trajectories, output, *how, title, text)
    time, size = format_duration(frames / config["film.fps"]), output.stat().st_size
    message = f"{time}, {format_bytes(size)}, {pluralize(frames, 'frame')}"
    if sizes:
        least, most = (f"{width}x{height}" for height, width in sizes)
        message += f", frames of {least} to {most} pixels, padded with black to {most}"
    return message
