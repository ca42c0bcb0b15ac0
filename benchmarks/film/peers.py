"""goalreel and its peers on the same episodes of Mountain Car: films, frames and seeds.

    film        the whole workflow: cold, and with atlas and coded atlas in the user's cache;
                Gymnasium's RecordVideo; moviepy with one ImageClip per frame
    rendering   frames of the frame cache; env.render()
    seeding     goalreel; np.random.default_rng

Peers are measured on fewer episodes, and their time is scaled. The table is peers.csv and peers.md.

    python -m benchmarks.film.peers                                           15 minutes
    python -m benchmarks.film.peers --reaches 40 --peer-episodes 3 --runs 1   a first try
"""

import statistics
import tempfile
import time
import timeit
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.film.replays import (
    Film,
    Taken,
    lost_frames,
    make,
    play,
    record_video,
    recorded_episodes,
    replayed,
)
from benchmarks.harness import (
    ENV,
    MismatchError,
    digits,
    medians,
    parser,
    pinned,
    run_workflow,
    take_turns,
    write_table,
)

HEADER = ("step", "FPS", "time, s", "ratio", "fastest, s", "slowest, s")
_BARE = ("overlay={title_card: 0, caption: ''}",)  # nothing over the frames, as in the peers' films
_MEDIUM = "goalreel, warm, x264 preset medium as the peers"
FILMS = {  # the first one starts with an empty cache
    "goalreel, cold": _BARE,
    "goalreel, warm": _BARE,
    "goalreel, warm, title cards and captions": (),
    "goalreel, warm, x264": (*_BARE, "encode={encoder: x264}"),
    _MEDIUM: (*_BARE, "encode={encoder: x264, preset: medium}"),
}
_FPS, _SEEDS, _PASSES = 30, 4096, 9


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    add = (options := parser(__doc__)).add_argument
    add("--reaches", type=int, default=1000, help="goal reaches to film (1000)")
    add("--peer-episodes", type=int, default=20, help="goal reaches that the peers film (20)")
    add("--cores", type=int, default=2, help="cores for everyone (2)")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="goalreel-peers-") as name, pinned(chosen.cores):
        folder = Path(name)
        found = take_turns({"round": partial(measure, folder, chosen)}, chosen.runs)["round"]
    rows = []
    for group in found[0]:
        whole = max(taken.frames for taken in found[0][group].values())
        base = None
        for name in found[0][group]:
            taken = [round_[group][name] for round_ in found]
            rows.append(cells(f"{group}: {name}", taken, whole, base or taken))
            base = base or taken
    write_table(chosen.output / "peers", HEADER, rows, notes(chosen))


def cells(step: str, taken: list[Taken], whole: int, base: list[Taken]) -> list[str]:
    """Return the cells of a contender, its times scaled to the group's whole work."""
    first = taken[0]
    remarks = [f"measured on {first.frames:,}, scaled"] * (first.frames < whole)
    remarks += [f"{first.lost:,} of {first.frames:,} frames lost"] * bool(first.lost)
    label = f"{step} ({'; '.join(remarks)})" if remarks else step
    seconds = [whole * one.seconds / one.frames for one in taken]
    median = statistics.median(seconds)
    baseline = statistics.median(whole * one.seconds / one.frames for one in base)
    speeds = digits(whole / median), digits(median), digits(baseline / median)
    return [label, *speeds, digits(min(seconds)), digits(max(seconds))]


def measure(folder: Path, options) -> dict[str, dict[str, Taken]]:
    """Measure every contender once, goalreel first, because the peers replay its episodes."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        films = dict(films_of(place, options))
        order = ["RecordVideo", *(name for name in films if name != "RecordVideo")]
        rendering = dict(rendered(place / "goalreel, cold" / "results", options.peer_episodes))
        return {
            "film": {name: films[name] for name in order},
            "rendering": rendering,
            "seeding": dict(seeded()),
        }


def films_of(folder: Path, options) -> Iterator[tuple[str, Taken]]:
    """Film with every contender, from the start to the MP4 file."""
    for name, config in FILMS.items():
        yield name, film_with_goalreel(folder / name, folder / "cache", options, config)
    episodes = recorded_episodes(folder / "goalreel, cold" / "results", options.peer_episodes)
    film = Film(ENV, options.reaches, options.peer_episodes)
    yield "RecordVideo", record_video(film, episodes, folder / "record")
    yield "moviepy, one ImageClip per frame", image_clips(film, episodes, folder / "clips")


def film_with_goalreel(folder: Path, cache: Path, options, config: tuple) -> Taken:
    """Film with the whole workflow. Title cards do not count. Raises MismatchError."""
    from goalreel.mp4.reader import read_index

    words = [f"reaches={options.reaches}", *config]
    seconds, _ = run_workflow(folder, options.cores, words, cache)
    episodes = recorded_episodes(folder / "results", options.reaches)
    frames = sum(len(episode.states) for episode in episodes)
    written = read_index(folder / "results" / "film.mp4").frames
    cards, rest = divmod(written - frames, options.reaches)
    if len(episodes) != options.reaches or rest or cards < 0:
        raise MismatchError(f"the film shows {written} frames of {len(episodes)} episodes")
    return Taken(frames, seconds)


def image_clips(film: Film, episodes: list, folder: Path) -> Taken:
    """Film with moviepy: one ImageClip per frame, concatenated to an MP4 for each episode.

    One MP4 of all episodes would hold every frame in memory. The first file is not timed.
    """
    from moviepy import ImageClip, concatenate_videoclips

    env = replayed(film, episodes[:1] + episodes)
    folder.mkdir()
    films = [folder / f"{number}.mp4" for number in range(len(episodes) + 1)]
    counts = []
    for path in films:
        if path == films[1]:
            start = time.perf_counter()
        frames: list = []
        counts.append(play(env, 1, lambda frames=frames: frames.append(env.render())))
        clips = [ImageClip(frame, duration=1 / _FPS) for frame in frames]
        concatenate_videoclips(clips).write_videofile(str(path), fps=_FPS, audio=False, logger=None)
    seconds = time.perf_counter() - start
    env.close()
    return Taken(sum(counts[1:]), seconds, lost=lost_frames(films[1:], sum(counts[1:])))


def rendered(results: Path, count: int) -> Iterator[tuple[str, Taken]]:
    """Make frames with every contender: RGB frames in memory, and the first shard's cache on disk.

    The first episode's frames are compared with Gymnasium's. Raises MismatchError.
    """
    import goalreel
    from goalreel.films.render import render_states
    from goalreel.provenance.spec import NO_SPEC
    from goalreel.rendering.atlas import read_atlas
    from goalreel.rendering.frame_cache import write_cache

    path = results / "frames" / "00000.npz"
    cache = goalreel.open_cache(path)
    trajectories = goalreel.read_trajectories(results / "trajectories" / "00000.npz")
    states = trajectories.states[: trajectories.offsets[min(count, len(trajectories))]].tolist()
    env = make(Film(ENV, 1, 1))
    env.reset(seed=0)
    start, seconds = time.perf_counter(), 0.0
    for frame, state in enumerate(states):
        env.unwrapped.state = state
        image = env.render()
        if frame < trajectories.offsets[1]:  # compared outside the time
            seconds -= time.perf_counter()
            if not np.array_equal(image, cache[frame]):
                raise MismatchError(f"frame {frame}: the frame cache differs from env.render()")
            seconds += time.perf_counter()
    yield "env.render()", Taken(len(states), time.perf_counter() - start - seconds)
    start = time.perf_counter()
    for _ in goalreel.open_cache(path):
        pass
    yield "goalreel, RGB from its cache", Taken(len(cache), time.perf_counter() - start)
    atlas = read_atlas(results / "atlas.npz")
    scratch = results.parent / "frames.npz"
    seconds = median_seconds(
        lambda: write_cache(scratch, render_states(trajectories, atlas, ENV, NO_SPEC))
    )
    yield "goalreel, a shard to its cache", Taken(len(cache), seconds)


def seeded() -> Iterator[tuple[str, Taken]]:
    """Draw the first positions of episodes with every contender. Raises MismatchError."""
    from goalreel.environments.mountain_car import reset

    seeds = np.random.default_rng(2025).integers(2**53, size=_SEEDS)
    start = time.perf_counter()
    drawn = [np.random.default_rng(seed).uniform(-0.6, -0.4) for seed in seeds.tolist()]
    yield "np.random.default_rng", Taken(_SEEDS, time.perf_counter() - start)
    if not np.array_equal(drawn, reset(seeds)[0]):
        raise MismatchError("goalreel's first positions differ from NumPy's")
    yield "goalreel", Taken(_SEEDS, median_seconds(lambda: reset(seeds)))


def median_seconds(work) -> float:
    """Return the median time of `work`, which takes milliseconds, after a first call."""
    return statistics.median(timeit.repeat(work, number=1, repeat=1 + _PASSES)[1:])


def notes(options) -> list[str]:
    """Return the notes below the table."""
    return [
        f"{medians(options.runs)}. Ratios are to the first row of each group. FPS counts frames, "
        "and episodes in seeding. Wall-clock time is scaled to the group's whole work.",
        f"film: {options.reaches:,} episodes, frames of 600x400 pixels. The peers play the same "
        "actions from the same seeds, and every state was compared. They write an MP4 for each "
        "episode, in one process. goalreel writes one film with tables and trajectories. Without "
        "title cards an assembled film has one frame before each episode, which does not count. "
        "The peers' x264 preset is medium, on all cores. goalreel's for Mountain Car is veryfast.",
        "cold: the user's cache is empty. warm: it holds the atlas and the coded atlas.",
        "rendering: frames of the film's first shard, as RGB in memory or as a cache on disk.",
    ]


if __name__ == "__main__":
    main()
