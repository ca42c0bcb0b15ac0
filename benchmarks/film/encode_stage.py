"""The encode stage, both ways: a shard for it, the work, its CPU seconds, its pictures' errors."""

import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.sample import ENV, MismatchError

FPS, SEED, CARDS = 30, 2025, 1  # one card: more would be frames without a car


@dataclass(frozen=True)
class Shard:
    """A shard's files, and how many frames its segment has."""

    trajectories: Path
    frames: Path
    count: int


def draw_atlas(folder: Path) -> None:
    """Draw the atlas into the folder."""
    from goalreel.pictures.atlas import draw_atlas, write_atlas
    from goalreel.pictures.styles import make_style

    write_atlas(folder / "atlas.npz", draw_atlas(make_style(ENV, {"style": "gymnasium"})))


def make_shard(folder: Path, name: str, reaches: int) -> Shard:
    """Play and render the first so many reaches."""
    from goalreel.environments.environment import make_environment
    from goalreel.films.render import render_states
    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.frame_cache import write_cache
    from goalreel.pictures.styles import make_style
    from goalreel.policies.policy import make_policy
    from goalreel.provenance.spec import parse_spec
    from goalreel.simulation.reaches import simulate_reaches
    from goalreel.simulation.trajectories import write_trajectories

    environment = make_environment({"env": ENV, "env_kwargs": {}, "max_steps": None})
    policy = make_policy({"name": "pump", "epsilon": 0})
    spec = parse_spec(f'{{"config":{{"env":"{ENV}"}}}}')
    setting = policy, 1, "reaches", spec, "terminated"
    trajectories = simulate_reaches(range(reaches), SEED, environment, *setting)
    style = make_style(ENV, {"style": "gymnasium"})
    cache = render_states(trajectories, read_atlas(folder / "atlas.npz"), style, spec)
    shard = Shard(folder / f"{name}-trajectories.npz", folder / f"{name}-frames.npz", 0)
    write_trajectories(shard.trajectories, trajectories)
    write_cache(shard.frames, cache)
    return Shard(shard.trajectories, shard.frames, len(cache) + CARDS * reaches)


def code(folder: Path, settings, hud: bool, path: Path) -> None:
    """Do what the coded atlas stage does."""
    from goalreel.encoding.assembling.code_atlas import code_atlas
    from goalreel.encoding.assembling.coded_atlas import write_coded_atlas
    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.overlay import clear_rows, empty_card

    atlas = read_atlas(folder / "atlas.npz")
    seen = atlas.background, ENV, hud
    quantisers = settings["qp"], settings["card_qp"]
    write_coded_atlas(path, code_atlas(atlas, empty_card(*seen), clear_rows(*seen), quantisers))


def assembled(shard: Shard, coded_atlas: Path, hud: bool, caption: str, path: Path) -> list[float]:
    """Assemble a shard; return the CPU seconds of the stage, and of joining and writing alone."""
    from goalreel.encoding.assembling.coded_atlas import read_coded_atlas
    from goalreel.encoding.assembling.segment_samples import samples_of
    from goalreel.films.segment import assemble_segment
    from goalreel.h264.parameter_sets import Stream, configuration
    from goalreel.mp4.movie_box import VideoTrack
    from goalreel.mp4.writer import write_mp4
    from goalreel.simulation.trajectories import read_trajectories

    def stage():
        cache = shown(shard, hud, caption)
        parts = cache, read_coded_atlas(coded_atlas), read_trajectories(shard.trajectories)
        assemble_segment(*parts, path, FPS, "")
        return parts

    parts, seconds = cpu_of(stage)
    samples, cache, expected = samples_of(*parts), parts[0], path.read_bytes()
    height, width = cache.background.shape[:2]

    def alone():
        video = VideoTrack(
            configuration=configuration(Stream((width, height), FPS)),
            size=(width, height),
            fps=FPS,
            sizes=samples.sizes,
            keyframes=cache.offsets[:-1],
        )
        write_mp4(path, video, samples.joined())

    _, joining = cpu_of(alone)
    if path.read_bytes() != expected:
        raise MismatchError("joining alone gave another file than the stage")
    return [seconds, joining]


def encoded(shard: Shard, settings, path: Path) -> list[float]:
    """Encode a shard with x264; return the CPU seconds of the stage, and of encoding alone."""
    from goalreel.films.segment import encode_segment

    cache, before = cpu_of(lambda: shown(shard, False, ""))
    _, alone = cpu_of(lambda: encode_segment(cache, path, FPS, settings, ""))
    return [before + alone, alone]


def shown(shard: Shard, hud: bool, caption: str):
    """Return a shard's frames with their overlay, read from its files."""
    from goalreel.pictures.frame_cache import open_cache
    from goalreel.pictures.overlay import captions, overlaid
    from goalreel.simulation.trajectories import read_trajectories

    trajectories = read_trajectories(shard.trajectories)
    texts = captions(caption, trajectories, ENV)
    return overlaid(open_cache(shard.frames), trajectories, ENV, texts, hud, CARDS)


def luma_errors(path: Path, frames: Iterable[np.ndarray], size: tuple[int, int]) -> np.ndarray:
    """Return the mean squared error of each frame's luma, as ffmpeg decodes it, (frames,).

    frames: what was encoded, in yuv420p; size: (width, height)
    """
    import imageio_ffmpeg

    decoded = imageio_ffmpeg.read_frames(str(path), pix_fmt="yuv420p", bits_per_pixel=12)
    next(decoded)
    samples = size[0] * size[1]
    errors = []
    for frame, right in zip(decoded, frames, strict=True):
        luma = np.frombuffer(frame, np.uint8, samples)
        difference = np.subtract(luma, right.reshape(-1)[:samples], dtype=np.int32)
        errors.append(np.square(difference).mean())
    return np.array(errors)


def psnr(error: float) -> float:
    """Return the PSNR in dB of a mean squared error."""
    return 10 * np.log10(255**2 / error) if error else float("inf")


def cpu_of(work: Callable) -> tuple[object, float]:
    """Do `work`; return its result and the CPU seconds of this process and those that it ended."""
    before = _cpu()
    result = work()
    return result, _cpu() - before


def _cpu() -> float:
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
