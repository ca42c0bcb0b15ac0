"""A recorder's video in the making: its frames, its name, its episode's outcome, who is told."""

import json
import os
import string
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.recorders.video_writer import Encoder

# Called with a finished video's path, its episode's number and what is known of that.
OnVideo = Callable[[str, int, dict], object]
_SAMPLE = {"name_prefix": "", "env": 0, "episode": 0, "step": 0, "seed": 0, "return": 0.0}
_SAMPLE |= {"length": 0, "terminated": False, "truncated": False}


@dataclass(frozen=True)
class Output:
    """How a recorder writes its videos."""

    folder: Path
    name_prefix: str
    fps: float
    qp: int
    preset: str
    name_pattern: str | None = None
    statistics: bool = False  # whether a video gets a JSON file beside it
    on_video: OnVideo | None = None

    def check(self) -> None:
        """Raise GoalreelError if a setting is not allowed."""
        Encoder("", self.fps, self.qp, self.preset)
        if self.name_pattern is None:
            return
        try:
            named = {field for _, field, _, _ in string.Formatter().parse(self.name_pattern)}
            self.name_pattern.format(**_SAMPLE)
            known = {"episode", "step"} & named
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            raise GoalreelError(
                f"name_pattern: {self.name_pattern!r} ({type(error).__name__}: {error}); allowed "
                f"fields: {', '.join(f'{{{name}}}' for name in _SAMPLE)}"
            ) from None
        if not known or "/" in self.name_pattern:
            raise GoalreelError(
                f"name_pattern: {self.name_pattern!r}; allowed: a file's name without its suffix, "
                f"with {{episode}} or {{step}} in it, which tell videos apart"
            )

    def prepare(self) -> None:
        """Check the settings, and make the folder. Raises GoalreelError as `check`."""
        from gymnasium import logger

        self.check()
        if self.folder.is_dir():
            logger.warn(
                f"Overwriting existing videos at {self.folder} folder (try another "
                "`video_folder` for the `RecordVideo` wrapper if this is not desired)"
            )
        self.folder.mkdir(parents=True, exist_ok=True)


def begun(episode: int, seed: int | None = None, env: int = 0) -> dict:
    """Return what is known of an episode at its beginning; see `stepped`."""
    return {"episode": episode, "env": env, "seed": seed, "return": 0.0, "length": 0} | {
        "terminated": False,
        "truncated": False,
    }


def stepped(info: dict, reward: float, terminated: bool, truncated: bool) -> None:
    """Add a step to what is known of an episode; its recording has the same dict."""
    info["return"] += float(reward)
    info["length"] += 1
    info["terminated"], info["truncated"] = bool(terminated), bool(truncated)


class Recording:
    """A video, which is finished at the latest when its owner is collected or Python ends."""

    def __init__(self, owner: object, output: Output, name: str, step: int, episode: Mapping):
        """Begin without a frame.

        Args:
            owner: what records it, which is not held.
            output: how it is written.
            name: the file's, without suffix, where the output has no pattern.
            step: at which it begins.
            episode: what is known of the episode that it begins in, which the owner updates.
        """
        self._output, self._episode, self._step = output, episode, step
        self._encoder = Encoder(output.folder / f"{name}.mp4", output.fps, output.qp, output.preset)
        # While ffmpeg can still be waited for; `__del__` may be too late when Python ends.
        self._at_exit = weakref.finalize(owner, self._finish)

    @property
    def written(self) -> int:
        """Return the number of frames written."""
        return self._encoder.written

    def write(self, frame: np.ndarray) -> None:
        """Write a frame. Raises GoalreelError as Encoder.write; the video is dropped then."""
        try:
            self._encoder.write(frame)
        except GoalreelError:
            self._at_exit.detach()
            raise

    def finish(self) -> Path | None:
        """Finish the video, and tell of it; return its path, None without a frame.

        An interrupt leaves it to be finished later. Raises GoalreelError if ffmpeg fails; there is
        no file then.
        """
        try:
            path = self._finish()
        except Exception:
            self._at_exit.detach()
            raise
        self._at_exit.detach()
        return path

    def _finish(self) -> Path | None:
        output, info = self._output, dict(self._episode) | {"step": self._step}
        name = None
        if output.name_pattern is not None:
            fields = info | {"name_prefix": output.name_prefix}
            name = f"{output.name_pattern.format(**fields)}.mp4"
        info["frames"] = self._encoder.finish(name)
        if not info["frames"]:
            return None
        path = self._encoder.path
        if output.statistics:
            with replacing(path.with_suffix(".json")) as place:
                place.write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
        if output.on_video is not None:
            output.on_video(os.fspath(path), info["episode"], info)
        return path
