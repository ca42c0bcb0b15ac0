"""save_video: snippets of rendered frames as MP4 files, named and cut as Gymnasium cuts them."""

import functools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.recorders.recording import OnVideo
from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import Encoder

_AT_ONCE = 8  # encoders that a stream of frames may keep busy, some 50 MB each


@dataclass(frozen=True)
class _Snippet:
    path: Path
    start: int  # number of its first frame
    stop: int | None  # number of the frame after its last, None: up to the end

    def shows(self, number: int) -> bool:
        return self.start <= number and (self.stop is None or number < self.stop)


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
    settings = {"fps": fps, "qp": qp, "preset": preset}
    Encoder("", **settings)  # refuses wrong ones before the first frame is made
    folder = Path(video_folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def starting(number: int) -> dict[_Snippet, Encoder]:
        """Return the snippet that starts with a frame, if there is one, and its encoder."""
        if number == 0:  # the frame from reset belongs to no step
            name, trigger, argument = f"episode-{episode_index}", episode_trigger, episode_index
        else:
            argument = step_starting_index + number - 1
            name, trigger = f"step-{argument}", step_trigger
        if trigger is None or not trigger(argument):
            return {}
        stop = None if video_length is None else number + video_length
        path = Path(f"{folder}/{name_prefix}-{name}.mp4")
        return {_Snippet(path, number, stop): Encoder(path, **settings, first=number)}

    def finish(encoder: Encoder, snippet: _Snippet) -> None:
        frames = encoder.finish()
        if not frames:
            warnings.warn(f"{snippet.path}: no frames, no video", stacklevel=4)
        elif on_video is not None:
            step = step_starting_index + max(snippet.start - 1, 0)
            told = {"episode": episode_index, "step": step, "frames": frames}
            on_video(str(snippet.path), episode_index, told)

    progress = functools.partial(_progress, logger=save_logger)
    if hasattr(frames, "__len__") and hasattr(frames, "__getitem__"):
        for number in range(max(len(frames), 1)):
            for snippet, encoder in starting(number).items():
                _encode(frames, snippet, encoder, progress, finish)
    else:
        _encode_stream(progress(frames, "frames"), starting, step_trigger is not None, finish)


def _encode(
    frames, snippet: _Snippet, encoder: Encoder, progress: Callable, finish: Callable
) -> None:
    """Encode a snippet of frames that can be looked up."""
    stop = len(frames) if snippet.stop is None else min(snippet.stop, len(frames))
    try:
        for number in progress(range(snippet.start, stop), snippet.path.name):
            encoder.write(frames[number])
        finish(encoder, snippet)
    finally:
        encoder.abort()


def _encode_stream(
    frames: Iterable,
    starting: Callable[[int], dict[_Snippet, Encoder]],
    anywhere: bool,
    finish: Callable,
) -> None:
    """Encode the snippets of frames that come once.

    anywhere: whether any frame may start a snippet; if only the first may, its end is the end.
    """
    running = starting(0)
    try:
        for number, frame in enumerate(frames):
            running |= starting(number) if number else {}
            if len(running) > _AT_ONCE:
                raise GoalreelError(
                    f"{len(running)} snippets overlap at frame {number}; allowed: {_AT_ONCE} of "
                    f"frames that come one by one; give a smaller video_length, or the frames as "
                    f"a list"
                )
            for snippet, encoder in list(running.items()):
                if snippet.shows(number):
                    encoder.write(frame)
                if not snippet.shows(number + 1):
                    finish(encoder, snippet)
                    del running[snippet]
            if not anywhere and not running:
                break
        for snippet, encoder in running.items():
            finish(encoder, snippet)
    finally:
        for encoder in running.values():
            encoder.abort()


def _progress(items: Iterable, name: str, logger: str | None) -> Iterator:
    """Return the items, with a progress bar on standard error if the logger is "bar"."""
    if logger is None:
        return iter(items)
    from rich.console import Console
    from rich.progress import track

    return track(items, name, console=Console(stderr=True))
