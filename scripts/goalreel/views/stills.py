"""The stills: a poster, a contact sheet and a preview of a run, for pages and papers.

Poster and preview show the median reach. What each picture is made of stands in poster,
contact_sheet and preview, which episodes there are in filmed.
"""

import itertools
import os
from collections.abc import Sequence

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.pictures.captions import caption
from goalreel.views.contact_sheet import MOST, Row, draw_sheet, sheet_row
from goalreel.views.filmed_episodes import Filmed, Place
from goalreel.views.poster import draw_poster
from goalreel.views.preview import preview

CAPTION = "Reach {reach} · seed {seed} · {steps} steps"


def save_poster(filmed: Filmed, path: str | os.PathLike, comment: str) -> None:
    """Write a poster of the median reach, PNG.

    comment: what the file keeps about its making. Raises GoalreelError if the frames cannot be
    used.
    """
    place = filmed.median()
    cache = filmed.open(place[0])
    episode = filmed.row(place)
    kind = "reaches" if episode["reached"] else "episodes"
    text = f"{caption(CAPTION, episode)} · the median of {len(filmed.by_steps()):,} {kind}"
    _save_png(path, draw_poster(cache, cache.episode(place[1]), filmed.env, text), comment)


def save_contact_sheet(
    filmed: Filmed,
    path: str | os.PathLike,
    chosen: Sequence[Place],
    comment: str,
    template: str = CAPTION,
) -> None:
    """Write a contact sheet of the chosen episodes, in this order, PNG.

    chosen: each episode's shard and its number there; template: of the captions, as in captions.
    Raises GoalreelError if there are none or more than MOST, if one does not exist, or if the
    frames cannot be used.
    """
    if not 1 <= len(chosen) <= MOST:
        raise GoalreelError(f"a contact sheet of {len(chosen)} episodes; allowed: 1 to {MOST}")
    rows: dict[Place, Row] = {}
    # Shard by shard, so that one frame cache is open at a time.
    for shard, places in itertools.groupby(sorted(set(chosen)), key=lambda place: place[0]):
        if not 0 <= shard < len(filmed.summaries):
            raise GoalreelError(f"no shard {shard}; there are {len(filmed.summaries)}")
        cache = filmed.open(shard)
        for place in places:
            if not 0 <= place[1] < len(cache.offsets) - 1:
                raise GoalreelError(
                    f"no episode {place[1]} in shard {shard}; it has {len(cache.offsets) - 1}"
                )
            text = caption(template, filmed.row(place))
            rows[place] = sheet_row(cache, cache.episode(place[1]), text)
    _save_png(path, draw_sheet([rows[place] for place in chosen]), comment)


def save_preview(filmed: Filmed, path: str | os.PathLike, fps: int, comment: str) -> str:
    """Write a preview of the median reach, WebP; return what it came to, for the log.

    Raises GoalreelError if the frames cannot be used.
    """
    shard, index = filmed.median()
    cache = filmed.open(shard)
    data, told = preview(cache, cache.episode(index), fps, comment)
    with replacing(path) as temporary:
        temporary.write_bytes(data)
    return told


def _save_png(path: str | os.PathLike, pixels: np.ndarray, comment: str) -> None:
    from PIL import Image, PngImagePlugin

    words = PngImagePlugin.PngInfo()
    words.add_itxt("Comment", comment)
    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, "PNG", pnginfo=words, optimize=True)
