"""save_video: write an episode, or snippets of it, from rendered frames to MP4 files.

Names and lengths of the files are those of gymnasium.utils.save_video.
"""

import math
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from goalreel.errors import GoalreelError
from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import OnVideo, VideoOptions, VideoWriter

_MAX_OVERLAP = 8  # encoders that run at the same time, about 50 MB each


class _Snippet(NamedTuple):
    name: str
    writer: VideoWriter
    stop: float  # the index of the frame after its last

    def finish(self) -> None:
        if self.writer.finish() is None:
            warnings.warn(f"{self.name}: Skipped, as it has no frames.", stacklevel=4)


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
    """Save an episode's frames, or snippets of them, like gymnasium.utils.save_video.

    Examples:
        >>> env = gymnasium.make("CartPole-v1", render_mode="rgb_array_list")
        >>> _ = env.reset(seed=7)
        >>> _ = env.step(0)
        >>> goalreel.save_video(env.render(), "videos", fps=env.metadata["render_fps"])

    Args:
        frames: uint8 arrays (H, W, 3), the first of them from reset. A sequence is encoded snippet
            by snippet. Any other iterable is read once, only as far as the snippets need, and at
            most eight snippets of it may overlap.
        video_folder: the folder of the videos, which is created if it is missing.
        episode_trigger: takes `episode_index` and returns whether to save the episode, as
            {name_prefix}-episode-{episode_index}.mp4. If there is no trigger, it is
            capped_cubic_video_schedule.
        step_trigger: takes a step's number and returns whether to save a snippet that starts with
            its frame, as {name_prefix}-step-{step}.mp4.
        video_length: the most frames of a snippet; None: up to the end.
        name_prefix: the prefix of file names.
        episode_index: the number of the episode.
        step_starting_index: the number of the episode's first step.
        save_logger: "bar" shows the progress on standard error.
        fps: frames per second, required.
        qp: x264's quantizer, 0 to 51. 0 is lossless. With others, odd sizes grow by a pixel.
        preset: the x264 preset.
        on_video: called with the path, `episode_index` and {"episode", "step", "frames"} when a
            file is complete. `step` is that of the first frame.

    Raises:
        GoalreelError: an argument or a frame is not allowed, too many snippets of an iterable
            overlap, or ffmpeg fails. Finished snippets stay, and others leave no file. A snippet
            without frames is skipped with a warning.
    """
    if episode_trigger is None and step_trigger is None:
        episode_trigger = capped_cubic_video_schedule
    if video_length is not None and video_length < 0:
        raise GoalreelError(f"video_length: {video_length} is not allowed. Use None, 0 or more.")
    if save_logger not in (None, "bar"):
        raise GoalreelError(f"save_logger: {save_logger!r} is not allowed. Use None or 'bar'.")
    options = VideoOptions(fps, qp, preset, on_video=on_video)
    folder = Path(video_folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def start_snippets(number: int) -> list[_Snippet]:
        """Return the snippet that starts with a frame, in a list, which may be empty."""
        step = step_starting_index + max(number - 1, 0)
        if number == 0:  # the frame from reset has no step
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
        _encode(shown, 0, start_snippets(0), start_snippets if step_trigger else None)
        return
    for number in range(max(len(frames), 1)):
        for snippet in start_snippets(number):
            own = range(number, min(snippet.stop, len(frames)))
            shown = _progress(own, snippet.name, save_logger)
            _encode(map(frames.__getitem__, shown), number, [snippet])


def _encode(
    frames: Iterable,
    first: int,
    running: list[_Snippet],
    start_snippets: Callable[[int], list[_Snippet]] | None = None,
) -> None:
    """Encode the snippets of an iterable of frames, reading no more frames than they need.

    `running` are the snippets that start with the first frame, of the index `first`, and
    `start_snippets` returns those that start with a later one.
    """
    try:
        for number, frame in enumerate(frames, first):
            running += start_snippets(number) if start_snippets and number > first else []
            if len(running) > _MAX_OVERLAP:
                raise GoalreelError(
                    f"step_trigger: {len(running)} snippets overlap at frame {number}, more than "
                    f"{_MAX_OVERLAP}. Use a smaller video_length, or pass the frames as a list."
                )
            for snippet in running.copy():
                if number < snippet.stop:
                    snippet.writer.append(frame)
                if number + 1 >= snippet.stop:
                    snippet.finish()
                    running.remove(snippet)
            if not (start_snippets or running):
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
