"""The stills: a poster, a contact sheet and a preview of a run, for pages and papers.

Poster and preview show the median episode.
"""

import os
from collections.abc import Sequence

import numpy as np

from goalreel.errors import pluralize
from goalreel.files.atomic import replacing
from goalreel.rendering.captions import default_captions
from goalreel.views.contact_sheet import draw_sheet, sheet_row
from goalreel.views.filmed_episodes import FilmedEpisodes, Place
from goalreel.views.poster import draw_poster
from goalreel.views.preview import preview


def save_poster(filmed: FilmedEpisodes, path: str | os.PathLike, comment: str) -> None:
    """Write a poster of the median episode, PNG; comment: its spec, which the file keeps."""
    episode, count = filmed.median(), len(filmed.ranked())
    kind = filmed.unit if episode.row["reached"] else "episode"
    template, _ = default_captions(filmed.unit)
    text = f"{episode.caption(template)} · the median of {pluralize(count, kind)}"
    poster = draw_poster(episode.cache, episode.frames, filmed.env, text)
    _save_png(path, poster, comment)


def save_contact_sheet(
    filmed: FilmedEpisodes, path: str | os.PathLike, chosen: Sequence[Place], comment: str
) -> None:
    """Write a contact sheet of the chosen episodes, in this order, PNG; comment: its spec."""
    template, _ = default_captions(filmed.unit)
    rows = {
        episode.place: sheet_row(episode.cache, episode.frames, episode.caption(template))
        for episode in filmed.episodes(sorted(set(chosen)))
    }
    _save_png(path, draw_sheet([rows[place] for place in chosen]), comment)


def save_preview(filmed: FilmedEpisodes, path: str | os.PathLike, fps: int, comment: str) -> str:
    """Write a preview of the median episode, WebP; return its size and frames, for the log."""
    episode = filmed.median()
    data, summary = preview(episode.cache, episode.frames, fps, comment)
    with replacing(path) as temporary:
        temporary.write_bytes(data)
    return summary


def _save_png(path: str | os.PathLike, pixels: np.ndarray, comment: str) -> None:
    from PIL import Image, PngImagePlugin

    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("Comment", comment)
    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, "PNG", pnginfo=texts, optimize=True)
