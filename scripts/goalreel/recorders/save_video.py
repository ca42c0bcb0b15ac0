"""save_video: snippets of rendered frames as MP4 files, named and cut as Gymnasium cuts them.

Which frames go into which file is told here; how they are encoded, in encoder. The module is not
called save_video, since `goalreel.save_video` is the function.
"""

import functools
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.spool import Spool
from goalreel.recorders.video_writer import Encoder, rgb_frame

# Encoders that a stream of frames may keep busy at once, some 50 MB each.
_AT_ONCE = 8


@dataclass(frozen=True)
class _Snippet:
    """The frames from number `start` up to `stop`, None: up to the end, and the file for them."""

    path: Path
    start: int
    stop: int | None

    def shows(self, number: int) -> bool:
        return self.start <= number and (self.stop is None or number < self.stop)


Starting = Callable[[int], list[_Snippet]]  # the snippets that start with a frame of this number
Opening = Callable[[_Snippet], Encoder]


def save_video(
    frames: Iterable,
    video_folder: str | os.PathLike,
    episode_trigger: Callable[[int], bool] | None = None,
    step_trigger: Callable[[int], bool] | None = None,
    video_length: int | None = None,
    name_prefix: str = "rl-video",
    episode_index: int = 0,
    step_starting_index: int = 0,
    save_logger: str | None = None,
    *,
    fps: float | None = None,
    qp: int = 23,
    preset: str = "veryfast",
) -> None:
    """Save an episode's frames, or snippets of them, in place of gymnasium.utils.save_video.

    frames: uint8 arrays (H, W, 3), the first of them from reset; any iterable. A sequence is
    encoded snippet by snippet. Other iterables are read once, never held, and no further than the
    snippets need; more than eight snippets of them at a time wait on disk.
    episode_trigger: whether to save the episode of index episode_index, as
    {name_prefix}-episode-{episode_index}.mp4. step_trigger: whether to save a snippet from the
    frame of a step on, as {name_prefix}-step-{step}.mp4; steps count from step_starting_index.
    Without triggers, schedule.capped_cubic_video_schedule chooses episodes.
    video_length: frames of a snippet; None: up to the end. save_logger: "bar" shows the progress.
    fps (which must be given), qp, preset: see encoder.Encoder; qp=0 stores exactly the pixels
    given, and otherwise odd sizes grow by a pixel.

    Snippets without frames are left out with a warning. Raises GoalreelError for arguments or
    frames that are something else, and if ffmpeg fails: finished snippets stay, others leave no
    file.

        save_video(env.render(), "videos", fps=env.metadata["render_fps"], episode_index=3)
    """
    if episode_trigger is None and step_trigger is None:
        episode_trigger = capped_cubic_video_schedule
    if video_length is not None and video_length < 0:
        raise GoalreelError(f"video_length: {video_length}; allowed: None, or 0 and more")
    if save_logger not in (None, "bar"):
        raise GoalreelError(f"save_logger: {save_logger!r}; allowed: None, 'bar'")
    settings = {"fps": fps, "qp": qp, "preset": preset}
    Encoder("", **settings)  # an error in them is told before the first frame is made
    folder = Path(video_folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def snippet(name: str, start: int) -> _Snippet:
        stop = None if video_length is None else start + video_length
        return _Snippet(Path(f"{folder}/{name_prefix}-{name}.mp4"), start, stop)

    def starting(number: int) -> list[_Snippet]:
        if number == 0:  # the frame from reset belongs to no step
            wanted = episode_trigger is not None and episode_trigger(episode_index)
            return [snippet(f"episode-{episode_index}", 0)] if wanted else []
        step = step_starting_index + number - 1
        wanted = step_trigger is not None and step_trigger(step)
        return [snippet(f"step-{step}", number)] if wanted else []

    def opening(snippet: _Snippet) -> Encoder:
        return Encoder(snippet.path, **settings, first=snippet.start)

    shown = functools.partial(_shown, logger=save_logger)
    if hasattr(frames, "__len__") and hasattr(frames, "__getitem__"):
        for number in range(max(len(frames), 1)):
            for each in starting(number):
                _encode(frames, len(frames), each, opening, shown)
    else:
        _encode_stream(frames, starting, opening, shown, whole=step_trigger is not None)


def _encode(frames, end: int, snippet: _Snippet, opening: Opening, shown: Callable) -> None:
    """Encode a snippet of frames that can be looked up, of which there are `end`."""
    encoder = opening(snippet)
    stop = end if snippet.stop is None else min(snippet.stop, end)
    try:
        for number in shown(range(snippet.start, stop), snippet.path.name):
            encoder.write(frames[number])
        _finish(encoder, snippet)
    finally:
        encoder.abort()


def _encode_stream(
    frames: Iterable, starting: Starting, opening: Opening, shown: Callable, whole: bool
) -> None:
    """Encode the snippets of frames that come once.

    whole: whether any frame may start a snippet; if only the first may, its end is the end.
    """
    running: dict[_Snippet, Encoder] = {}
    waiting: list[_Snippet] = []
    awaited = 0.0  # the number of the first frame that no waiting snippet will show
    spool, end = Spool(), 0
    new = starting(0)
    try:
        for end, frame in enumerate(shown(frames, "frames"), 1):
            number = end - 1
            for snippet in new if number == 0 else starting(number):
                if len(running) < _AT_ONCE:
                    running[snippet] = opening(snippet)
                else:
                    waiting.append(snippet)
                    awaited = max(awaited, math.inf if snippet.stop is None else snippet.stop)
            if number < awaited:
                spool[number] = rgb_frame(frame, number)
            for snippet, encoder in list(running.items()):
                if snippet.shows(number):
                    encoder.write(frame)
                if not snippet.shows(end):
                    _finish(encoder, snippet)
                    del running[snippet]
            if not whole and not running:
                break
        if end == 0:
            running = {snippet: opening(snippet) for snippet in new}
        for snippet, encoder in running.items():
            _finish(encoder, snippet)
        for snippet in waiting:
            _encode(spool, end, snippet, opening, shown)
    finally:
        for encoder in running.values():
            encoder.abort()
        spool.close()


def _finish(encoder: Encoder, snippet: _Snippet) -> None:
    if not encoder.finish():
        warnings.warn(f"{snippet.path}: no frames, no video", stacklevel=4)


def _shown(items: Iterable, name: str, logger: str | None) -> Iterator:
    """Return the items, with a progress bar on standard error if the logger is "bar"."""
    if logger is None:
        return iter(items)
    from rich.console import Console
    from rich.progress import track

    return track(items, name, console=Console(stderr=True))
