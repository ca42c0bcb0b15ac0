"""save_video: snippets of rendered frames as MP4 files, named and cut as Gymnasium cuts them."""

import math
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from goalreel.errors import GoalreelError
from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import OnVideo, VideoOptions, VideoWriter

_MAX_OVERLAP = 8  # encoders that a stream of frames may keep busy, some 50 MB each


class _Snippet(NamedTuple):
    name: str
    writer: VideoWriter
    stop: float  # number of the frame after its last

    def finish(self) -> None:
        if self.writer.finish() is None:
            warnings.warn(f"{self.name}: no frames, no video", stacklevel=4)


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
    on_video: OnVideo | None = None,
) -> None:
    """Save an episode's frames, or snippets of them, in place of gymnasium.utils.save_video.

        save_video(env.render(), "videos", fps=env.metadata["render_fps"], episode_index=3)

    Args:
        frames: uint8 arrays (H, W, 3), the first of them from reset. A sequence is encoded snippet
            by snippet. Any other iterable is read once, never held, and no further than the
            snippets need; up to eight snippets of it may overlap.
        video_folder: where the files go; made if it is not there.
        episode_trigger: whether to save the episode of index `episode_index`, as
            {name_prefix}-episode-{episode_index}.mp4.
        step_trigger: whether to save a snippet from the frame of a step on, as
            {name_prefix}-step-{step}.mp4. Without triggers, capped_cubic_video_schedule chooses
            episodes.
        video_length: frames of a snippet; None: up to the end.
        name_prefix: of the files.
        episode_index: number of the episode.
        step_starting_index: number of the episode's first step.
        save_logger: "bar" shows the progress on standard error.
        fps: frames per second, which must be given.
        qp: x264's quantiser, 0 to 51. 0 stores exactly the pixels given; otherwise odd sizes grow
            by a pixel.
        preset: x264's.
        on_video: called with the path, `episode_index` and {"episode", "step", "frames"} when a
            snippet's file is whole; its step is that of its first frame.

    Raises:
        GoalreelError: arguments or frames are something else, too many snippets of a stream
            overlap, or ffmpeg fails. Finished snippets stay, others leave no file. A snippet
            without frames is left out with a warning.
    """
    if episode_trigger is None and step_trigger is None:
        episode_trigger = capped_cubic_video_schedule
    if video_length is not None and video_length < 0:
        raise GoalreelError(f"video_length: {video_length}; allowed: None, or 0 and more")
    if save_logger not in (None, "bar"):
        raise GoalreelError(f"save_logger: {save_logger!r}; allowed: None, 'bar'")
    options = VideoOptions(fps, qp, preset, on_video=on_video)
    folder = Path(video_folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def starting(number: int) -> list[_Snippet]:
        """Return the snippet that starts with a frame, if there is one."""
        step = step_starting_index + max(number - 1, 0)
        if number == 0:  # the frame from reset belongs to no step
            name, trigger, argument = f"episode-{episode_index}", episode_trigger, episode_index
        else:
            name, trigger, argument = f"step-{step}", step_trigger, step
        if trigger is None or not trigger(argument):
            return []
        stop = math.inf if video_length is None else number + video_length
        name = f"{name_prefix}-{name}.mp4"
        episode = {"episode": episode_index}
        writer = VideoWriter(folder / name, options, episode, step, first=number)
        return [_Snippet(name, writer, stop)]

    if not (hasattr(frames, "__len__") and hasattr(frames, "__getitem__")):
        shown = _progress(frames, "frames", save_logger)
        _encode(shown, 0, starting(0), starting if step_trigger else None)
        return
    for number in range(max(len(frames), 1)):
        for snippet in starting(number):
            own = range(number, min(snippet.stop, len(frames)))
            shown = _progress(own, snippet.name, save_logger)
            _encode(map(frames.__getitem__, shown), number, [snippet])


def _encode(
    frames: Iterable,
    first: int,
    running: list[_Snippet],
    starting: Callable[[int], list[_Snippet]] | None = None,
) -> None:
    """Encode the snippets of frames that come once, and read no more than they need.

    running: those that start with the frame of number `first`; starting: returns those that start
    with a later one, None if none does.
    """
    try:
        for number, frame in enumerate(frames, first):
            running += starting(number) if starting and number > first else []
            if len(running) > _MAX_OVERLAP:
                raise GoalreelError(
                    f"{len(running)} snippets overlap at frame {number}; allowed: {_MAX_OVERLAP} "
                    f"of frames that come one by one; give a smaller video_length, or the frames "
                    f"as a list"
                )
            for snippet in running.copy():
                if number < snippet.stop:
                    snippet.writer.append(frame)
                if number + 1 >= snippet.stop:
                    snippet.finish()
                    running.remove(snippet)
            if not (starting or running):
                break
        for snippet in running:
            snippet.finish()
    finally:
        for snippet in running:
            snippet.writer.abort()


def _progress(items: Iterable, name: str, logger: str | None) -> Iterable:
    """Return the items, with a progress bar on standard error if the logger is "bar"."""
    if logger is None:
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, name, console=Console(stderr=True))
