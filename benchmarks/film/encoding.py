"""Encoders on the same frames: CPU time, bytes and quality. One command for each table.

    quality     goalreel's films of Mountain Car, assembled and by x264 (assemble.csv, assemble.md,
                quality.md): the whole encode stage, overlay included
    blocks      films of rendered frames, assembled from blocks and by x264, with title cards and
                captions
    presets     x264's presets on the same environments and more
    lossless    the frame cache against lossless codecs: bytes only

CPU seconds are those of this process and its ffmpeg. Luma's PSNR is against the encoded frames.

    python -m benchmarks.film.encoding quality                               ten minutes
    python -m benchmarks.film.encoding quality --episodes 3 --runs 1         a first try
    python -m benchmarks.film.encoding blocks                                a few minutes
    python -m benchmarks.film.encoding presets --runs 1 --envs CartPole-v1   a first try
    python -m benchmarks.film.encoding lossless                              five minutes
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.film.replays import FILMS, Film
from benchmarks.harness import (
    ENV,
    cpu_of,
    digits,
    markdown,
    medians,
    parser,
    take_turns,
    write_table,
)

FPS, SEED, FRAMES = 30, 2025, 600  # frames of a film, at least
CAPTION = "Reach {reach} · seed {seed} · {steps} steps"
OVERLAYS = {
    "none": (False, ""),
    "HUD": (True, ""),
    "captions": (False, CAPTION),
    "HUD and captions": (True, CAPTION),
}
_X264 = {"encoder": "x264", "preset": "veryfast", "qp": 23}
BLOCKS = {
    "blocks": {"encoder": "blocks", "qp": 25, "card_qp": 12},
    "x264 ultrafast": _X264 | {"preset": "ultrafast"},
    "x264 veryfast": _X264,
}
PRESETS = {
    f"{preset} {qp}": _X264 | {"preset": preset, "qp": qp}
    for preset, qp in (("veryfast", 23), ("superfast", 23), ("ultrafast", 23), ("ultrafast", 26))
}
_LOSSLESS = ["-c:v", "libx264rgb", "-qp", "0", "-g", "1000", "-preset"]
CODECS = {
    "FFV1": ["-c:v", "ffv1", "-level", "3", "-g", "1000"],
    "PNG": ["-c:v", "png"],
    "x264 RGB, ultrafast": [*_LOSSLESS, "ultrafast"],
    "x264 RGB, veryfast": [*_LOSSLESS, "veryfast"],
}
HEADER = ("environment", "encoder", "CPU, µs/frame", "time", "bytes/frame", "size")
HEADER += ("PSNR Y, dB", "worst frame, dB")


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write a table."""
    add = (options := parser(__doc__)).add_argument
    names = [*(film.name for film in FILMS), ENV]
    add("table", choices=TABLES)
    add("--envs", nargs="+", choices=names, default=names, metavar="ENV", help=", ".join(names))
    add("--episodes", type=int, help="episodes of `quality` (100) and `blocks` (a shard)")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-encoding-") as name:
        TABLES[chosen.table](Path(name), chosen)


def compare(group: str, works: dict, baseline: str, folder: Path, runs: int) -> list[list[str]]:
    """Return the rows of a group, each of which encodes the same number of frames.

    `works` has, by encoder, a function of the path of a segment, and the frames in it. All ratios
    are to the baseline. A first run, which imports, does not count.
    """
    paths = {name: folder / f"{number}.mp4" for number, name in enumerate(works)}
    quality = {}
    for name, (work, frames) in works.items():
        work(paths[name])
        quality[name] = luma_psnr(paths[name], frames)
    contenders = {name: partial(cpu_of, partial(works[name][0], paths[name])) for name in works}
    found = take_turns(contenders, runs)
    count, rows = len(works[baseline][1]), []
    times = {name: statistics.median(cpu for _, cpu in taken) for name, taken in found.items()}
    base_time, base_size = times[baseline], paths[baseline].stat().st_size
    for name, time in times.items():
        size = paths[name].stat().st_size
        figures = f"{1e6 * time / count:.0f}", digits(time / base_time)
        figures += f"{size / count:.0f}", f"{size / base_size:.2f}"
        rows.append([group, name, *figures, *(f"{value:.2f}" for value in quality[name])])
    return rows


def luma_psnr(path: Path, cache) -> tuple[float, float]:
    """Return the PSNR of luma in dB of all frames and of the worst one, as ffmpeg decodes them."""
    import imageio_ffmpeg

    from goalreel.encoding.yuv import Yuv420p

    view, errors = Yuv420p(cache), []
    samples = view.size[0] * view.size[1]
    decoded = imageio_ffmpeg.read_frames(str(path), pix_fmt="yuv420p", bits_per_pixel=12)
    next(decoded)
    for frame, right in zip(decoded, view.frames(), strict=True):
        luma = np.frombuffer(frame, np.uint8, samples)
        difference = np.subtract(luma, right.reshape(-1)[:samples], dtype=np.int32)
        errors.append(np.square(difference).mean())
    mean, worst = (10 * np.log10(255**2 / max(e, 1e-9)) for e in (np.mean(errors), max(errors)))
    return mean, worst


# Frames


def mountain_car(folder: Path, reaches: int):
    """Play and render Mountain Car, and return the paths of trajectories and frame cache."""
    from goalreel.environments.environment import make_environment
    from goalreel.films.render import render_states
    from goalreel.policies.policy import make_policy
    from goalreel.provenance.spec import parse_spec
    from goalreel.rendering.atlas import draw_atlas, write_atlas
    from goalreel.rendering.frame_cache import write_cache
    from goalreel.simulation.reaches import simulate_reaches
    from goalreel.simulation.trajectories import write_trajectories

    atlas = draw_atlas(ENV)
    spec = parse_spec(f'{{"config":{{"env":"{ENV}"}}}}')
    environment = make_environment({"env": ENV, "env_kwargs": {}, "max_episode_steps": None})
    policy = make_policy({"name": "pump", "epsilon": 0})
    rules = policy, 1, False, spec, "terminated"
    trajectories = simulate_reaches(range(reaches), SEED, environment, *rules)
    write_atlas(folder / "atlas.npz", atlas)
    write_trajectories(folder / "trajectories.npz", trajectories)
    write_cache(folder / "frames.npz", render_states(trajectories, atlas, ENV, spec))
    return folder / "trajectories.npz", folder / "frames.npz"


def filmed(film: Film, folder: Path, captions: bool = False, episodes: int | None = None):
    """Return the frames of as many episodes as FRAMES needs.

    With captions, return a whole shard of the default size or of `episodes`.
    """
    from goalreel.environments.environment import make_environment
    from goalreel.environments.registry import describe
    from goalreel.policies.policy import make_policy
    from goalreel.provenance.spec import NO_SPEC
    from goalreel.rendering.frame_cache import open_cache
    from goalreel.rendering.frame_recorder import filming
    from goalreel.rendering.overlay import add_overlay
    from goalreel.simulation.reaches import simulate_reaches

    if film.id == ENV:
        return open_cache(mountain_car(folder, 6)[1])
    policy = {"extra_files": [], "batch": True, **film.policy(folder)}
    episodes = episodes or describe(film.id).shard_size if captions else 1
    path, cache = folder / "f.npz", ()
    while not cache or (len(cache) < FRAMES and not captions):
        options = {"env": film.id, "max_episode_steps": film.max_episode_steps}
        environment = make_environment(options)
        with filming(path, environment) as recorder:
            given = range(episodes), SEED, environment, make_policy(policy), 1
            made = simulate_reaches(*given, success=None, recorder=recorder)
            recorder.write(made.digest(), NO_SPEC)
        cache, episodes = open_cache(path), 2 * episodes
    if not captions:
        return cache
    texts = [f"Episode {number}" for number in range(len(made))]
    return add_overlay(cache, made, film.id, texts, hud=False)


# Tables


def quality(folder: Path, options) -> None:
    """Compare assembled films of Mountain Car with x264's, at the same quality."""
    from goalreel.encoding.assembling.coded_atlas import read_coded_atlas, write_coded_atlas
    from goalreel.encoding.assembling.encode_atlas import code_atlas
    from goalreel.encoding.encoder_selection import choose, x264
    from goalreel.films.segment import assemble_segment, encode_segment
    from goalreel.rendering.atlas import read_atlas
    from goalreel.rendering.frame_cache import open_cache
    from goalreel.rendering.overlay import add_overlay, captions, empty_track
    from goalreel.simulation.trajectories import read_trajectories

    episodes = options.episodes or 100
    paths = mountain_car(folder, episodes)
    atlas = read_atlas(folder / "atlas.npz")

    def shown(hud: bool, caption: str):
        trajectories = read_trajectories(paths[0])
        texts = captions(caption, trajectories, ENV, "reach")
        return add_overlay(open_cache(paths[1]), trajectories, ENV, texts, hud, track=True)

    def assembled(coded_atlas: Path, hud: bool, caption: str, path: Path) -> None:
        assemble_segment(shown(hud, caption), read_coded_atlas(coded_atlas), path, FPS, "")

    def encoded(settings: dict, path: Path) -> None:
        encode_segment(shown(False, ""), path, FPS, settings, "")

    config = {"env": ENV, "max_episode_steps": None, "film": {"fps": FPS}}
    config["overlay"] = {"hud": False, "caption": CAPTION, "title_card": 0.5}
    rows = []
    for name in ("small", "balanced", "best"):
        encode = {"encoder": "auto", "preset": None, "qp": None, "crf": None, "quality": name}
        quantizers = choose({**config, "encode": encode}).settings
        works = {}
        for overlay, (hud, caption) in OVERLAYS.items():
            coded = folder / f"{name}-{hud}.npz"
            if not coded.exists():
                seen = atlas.background, ENV, hud
                given = quantizers["qp"], quantizers["card_qp"]
                write_coded_atlas(coded, code_atlas(atlas, *empty_track(*seen), given))
            work = partial(assembled, coded, hud, caption)
            works["assembled", overlay] = work, shown(hud, caption)
        for preset in ("ultrafast", "veryfast", "medium"):
            settings = x264({"env": ENV, "encode": encode | {"preset": preset}})
            works[f"x264 {preset}", "none"] = partial(encoded, settings), shown(False, "")
        found = compare(name, works, ("x264 veryfast", "none"), folder, options.runs)
        rows += [[group, *encoder, *figures] for group, encoder, *figures in found]
    header = ("quality", "encoder", "overlay", *HEADER[2:])
    notes = [
        f"{medians(options.runs)}. CPU time of the encode stage, without imports: files are read, "
        "the overlay is drawn, captions and HUD are coded, the segment is written. time, size: to "
        "x264 veryfast at the same quality.",
        f"{ENV}, 600x400, {episodes:,} episodes, each after one title card. PSNR of luma, "
        "from the mean squared error of all frames, and of the worst.",
    ]
    write_table(options.output / "assemble", header, rows, notes, words=3)
    short = [0, 1, 2, 5, 7, 8]
    lines = [
        [*(row[column] for column in short), digits(1 / float(row[4]))]
        for row in rows
        if row[1] in ("assembled", "x264 veryfast")
    ]
    names = [*(header[column] for column in short), "speed of the stage"]
    table = markdown(names, lines, words=3)
    (options.output / "quality.md").write_text(table, encoding="utf-8")


def blocks(folder: Path, options) -> None:
    """Compare films assembled from blocks with x264's."""
    films = FILMS[:4] + FILMS[5:9]
    drawn(folder, options, "blocks", films, BLOCKS, "x264 veryfast", captions=True)


def presets(folder: Path, options) -> None:
    """Compare x264's presets."""
    drawn(
        folder,
        options,
        "presets",
        (*FILMS, Film(ENV, 2, 0)),
        PRESETS,
        "veryfast 23",
        captions=False,
    )


def drawn(folder: Path, options, table: str, films, encoders: dict, baseline: str, captions: bool):
    """Write the table of some films by some encoders, one of which is the baseline."""
    from goalreel.films.segment import assemble_blocks, encode_segment

    def work(frames, settings: dict) -> tuple:
        make = assemble_blocks if settings["encoder"] == "blocks" else encode_segment
        return lambda path: make(frames, path, FPS, settings, "{}"), frames

    rows = []
    for film in (film for film in films if film.name in options.envs):
        frames = filmed(film, folder, captions, options.episodes)
        works = {name: work(frames, settings) for name, settings in encoders.items()}
        rows += compare(film.name, works, baseline, folder, options.runs)
    overlay = "captions" if captions else "no captions"
    notes = [
        f"{medians(options.runs)}. CPU time includes ffmpeg's start. time, size: to x264 veryfast, "
        "qp 23. PSNR of luma, from the mean squared error of all frames, and of the worst.",
        f"Films with {overlay}, random policies, CartPole balanced, Mountain Car by pump.",
    ]
    write_table(options.output / table, HEADER, rows, notes, 2)


def lossless(folder: Path, options) -> None:
    """Compare the bytes of the frame cache with those of lossless codecs."""
    rows = []
    for film in (film for film in FILMS if film.name in options.envs):
        cache = filmed(film, folder)
        sizes = [(folder / "f.npz").stat().st_size / len(cache)]
        sizes += [coded_bytes(cache, codec, folder / "film.mkv") for codec in CODECS.values()]
        rows.append([film.name, *(f"{size:.0f}" for size in sizes)])
    notes = [
        f"Bytes a frame, of {FRAMES} frames or more, random policies, CartPole balanced. A cache "
        "has a whole frame at the start of each episode and every 256 frames. The codecs but PNG "
        "have one in all."
    ]
    write_table(options.output / "lossless", ("environment", "frame cache", *CODECS), rows, notes)


def coded_bytes(cache, codec: list[str], path: Path) -> float:
    """Return a codec's bytes per frame."""
    from goalreel.encoding import ffmpeg

    height, width = cache.background.shape[:2]
    raw = ["-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", f"{width}x{height}"]
    frames = ffmpeg.run([*raw, "-i", "pipe:0", *codec, "-y", str(path)], cache)
    return path.stat().st_size / frames


TABLES = {"quality": quality, "blocks": blocks, "presets": presets, "lossless": lossless}


if __name__ == "__main__":
    main()
