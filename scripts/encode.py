"""Make a shard's video from its frames: an MP4 file of closed GOPs, with the overlay.

The video is assembled from a coded atlas or from its own blocks, or encoded by x264. Smaller frames
are padded to --height and --width.
"""

from goalreel.stage_program import stage


@stage
def encode(spec, frames, trajectories, output, coded_atlas=None, height: int = 0, width: int = 0):
    from dataclasses import replace

    from goalreel.encoding.assembling.coded_atlas import read_coded_atlas
    from goalreel.films.segment import assemble_blocks, assemble_segment, encode_segment
    from goalreel.rendering.frame_cache import open_cache
    from goalreel.rendering.overlay import add_overlay, captions
    from goalreel.rendering.title_cards import card_texts, title_cards
    from goalreel.simulation.trajectories import read_trajectories

    config, images = spec.config, open_cache(frames, (height, width))
    episodes, env, unit = read_trajectories(trajectories), config["env"], config["unit"]
    texts, card = captions(config["overlay.caption"], episodes, env, unit), config["title_card"]
    encoder = config["film_encoder"]
    seen = texts, config["overlay.hud"], encoder["encoder"] == "assemble", config["render.scale"]
    cache = add_overlay(images, episodes, env, *seen, config["overlay.signals"])
    if card:
        rows = map(episodes.episodes.row, range(len(episodes)))
        lines = [card_texts(row, env, card["policy"], unit, card["count"]) for row in rows]
        titles = title_cards(cache.background.shape[:2], lines, card["frames"])
        cache = replace(cache, titles=titles)
    extra = {"source": cache.source} | ({"sizes": images.sizes} if images.sizes else {})
    fps, comment = config["film.fps"], spec.extended(**extra).text
    if encoder["encoder"] != "assemble":
        make = encode_segment if encoder["encoder"] == "x264" else assemble_blocks
        make(cache, output, fps, encoder, comment)
    else:
        assemble_segment(cache, read_coded_atlas(coded_atlas), output, fps, comment)
    return f"{len(cache) + len(cache.titles or ())} frames in {output.stat().st_size} bytes"
