"""Figures of one episode for a README or a paper: animations, a film strip and a composite."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.files.svg_plot import plot_style
from goalreel.provenance.spec import Spec
from goalreel.rendering.captions import default_captions
from goalreel.views.filmed_episodes import FilmedEpisodes
from goalreel.views.poster import band, enlarge, filmstrip, stroboscope
from goalreel.views.preview import preview
from goalreel.views.triggers import select_episodes
from goalreel.views.view_files import write_png

# The animations of Gymnasium's documentation (docs/_scripts/gen_gifs.py): frames, and ms of each.
_GYMNASIUM_FRAMES, _GYMNASIUM_MS = 301, 50
_DPI = 200  # of a picture in a PDF or SVG
_LINES = """\
<picture>
  <source srcset="episode.webp" type="image/webp">
  <img src="episode.gif" alt="{env}. {text}">
</picture>

![{env}. {text}](filmstrip.png)
"""


def write_figures(folder: Path, filmed: FilmedEpisodes, spec: Spec) -> list[str]:
    """Write the figures of an episode to a folder, and return a line about each animation."""
    options, fps = spec.config["figures"], spec.config["film.fps"]
    chosen = select_episodes(options["episode_trigger"], filmed.rows).tolist()
    if options["episode_trigger"] is not None and not chosen:
        problem = f"No episode matches '{options['episode_trigger']}'"
        fix = f"The film has the episodes 0 to {len(filmed) - 1}."
        raise GoalreelError(f"figures.episode_trigger: {problem}. {fix}")
    episode = next(filmed.episodes(chosen)) if chosen else filmed.median()
    text, said = episode.caption(default_captions(filmed.unit)[0]), []
    for kind in ("GIF", "WEBP"):
        given = episode.cache, episode.frames, fps, spec.text, kind, int(options["max_mb"] * 1e6)
        data, summary = preview(*given)
        (folder / f"episode.{kind.lower()}").write_bytes(data)
        said.append(f"{kind}: {summary}")
    images = {"filmstrip": filmstrip(episode)}
    composite = stroboscope(episode.cache, episode.frames)
    if composite is not None:  # its parts move far enough
        images["composite"] = enlarge(composite)
    for name, image in images.items():
        picture = np.concatenate([image, band(image.shape[1], filmed.env, text)])
        for suffix in ("png", "pdf", "svg"):
            _write_picture(folder / f"{name}.{suffix}", picture, spec.text)
    _write_gymnasium_gif(folder / "gymnasium.gif", filmed)
    (folder / "README.md").write_text(_LINES.format(env=filmed.env, text=text), encoding="utf-8")
    return said


def _write_gymnasium_gif(path: Path, filmed: FilmedEpisodes) -> None:
    images: list[Image.Image] = []
    for episode in filmed.episodes():
        images += map(Image.fromarray, map(episode.cache.__getitem__, episode.frames))
        if len(images) >= _GYMNASIUM_FRAMES:
            break
    first, *others = images[:_GYMNASIUM_FRAMES]
    first.save(path, save_all=True, append_images=others, duration=_GYMNASIUM_MS, loop=0)


def _write_picture(path: Path, pixels: np.ndarray, comment: str) -> None:
    """Write an image, (H, W, 3) uint8, and its spec, without loss: a PDF, SVG or PNG."""
    if path.suffix == ".png":
        write_png(path, pixels, comment)
        return
    words = {"Subject": comment, "CreationDate": None}
    metadata = words if path.suffix == ".pdf" else {"Source": comment, "Date": None}
    height, width, _ = pixels.shape
    with plot_style(), replacing(path) as temporary:
        figure = Figure(figsize=(width / _DPI, height / _DPI), layout="none")
        axes = figure.add_axes([0, 0, 1, 1])
        axes.imshow(pixels, interpolation="none", aspect="auto")
        axes.axis("off")
        figure.savefig(temporary, format=path.suffix[1:], dpi=_DPI, metadata=metadata)
