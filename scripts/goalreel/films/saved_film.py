"""A film that `goalreel.film` made: its file, its table, and how a notebook shows both."""

import base64
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError, not_allowed
from goalreel.files.atomic import replacing

if TYPE_CHECKING:
    import pandas

_MOST_EMBEDDED = 10_000_000  # bytes of a film inside a notebook; it links a larger one
# Browsers slow down more than 50 frames of a GIF per second.
_GIF = r"fps=min(source_fps\,50)"
# Arguments of ffmpeg for a film in another format. libwebp would misread the film's YUV.
_FORMATS = {
    ".mp4": [],
    ".gif": ["-lavfi", f"{_GIF}[frames];[frames][1]paletteuse=dither=none"],
    ".webp": ["-pix_fmt", "bgra", "-c:v", "libwebp_anim", "-loop", "0", "-quality", "80"],
}


@dataclass(frozen=True)
class SavedFilm:
    """A film and its table. A notebook shows the film, playable, above the table."""

    path: Path
    table: "pandas.DataFrame"  # a row for each episode, as in episodes.csv, with its outcome

    @property
    def episodes(self) -> int:
        """The number of filmed episodes."""
        return len(self.table)

    def _repr_html_(self) -> str:
        source, is_image = quote(self.path.as_posix()), self.path.suffix != ".mp4"
        if self.path.stat().st_size <= _MOST_EMBEDDED:
            kind = f"{'image' if is_image else 'video'}/{self.path.suffix[1:]}"
            source = f"data:{kind};base64,{base64.b64encode(self.path.read_bytes()).decode()}"
        tag = "img" if is_image else "video controls"
        return f'<{tag} width="600" src="{source}">\n{self.table.to_html(max_rows=20, index=False)}'


def check_format(to: str | Path) -> None:
    """Raise GoalreelError if a film cannot have the suffix of this path."""
    if (suffix := Path(to).suffix) not in _FORMATS:
        raise GoalreelError(f"to: {not_allowed(suffix, _FORMATS)}")


def save_film(film: Path, to: str | Path) -> None:
    """Write a film to a path that `check_format` accepts. Raises GoalreelError if ffmpeg fails."""
    with replacing(to) as temporary:
        if arguments := _FORMATS[Path(to).suffix]:
            inputs, target = ["-loglevel", "error", "-y", "-i", f"file:{film}"], f"file:{temporary}"
            if target.endswith(".gif"):  # has one palette, and ffmpeg would hold all frames for it
                palette = f"file:{temporary.with_name('palette.png')}"
                ffmpeg.run([*inputs, "-vf", f"{_GIF},palettegen", "-update", "1", palette], [])
                inputs += ["-i", palette]
            ffmpeg.run([*inputs, *arguments, target], [])
        else:
            shutil.copyfile(film, temporary)
