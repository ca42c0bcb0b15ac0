"""Export a run as a LeRobot dataset, version 3: videos of many episodes, and steps in Parquet.

A LeRobot frame is the observation before an action, so an episode of n steps has n frames, and the
frame of its last state is omitted. The frames of an episode are consecutive in their video, so all
timestamps are whole frames. Source of fields and files: lerobot 0.4.4 (lerobot/datasets).
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.arrays import ranges
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar
from goalreel.provenance.spec import Spec
from goalreel.simulation.trajectories import read_trajectories
from goalreel.views.filmed_episodes import FilmedEpisodes

VERSION = "v3.0"
_FRAMES = 20_000  # the size of a file, rounded up to whole episodes
_KEYFRAMES = 8  # frames between keyframes; random access decodes at most this many
_SAMPLE = 16  # the image statistics use one frame in so many
_IMAGE, _STATE, _ACTION = "observation.image", "observation.state", "action"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}


def write_dataset(
    folder: Path, filmed: FilmedEpisodes, trajectories: Sequence[Path], spec: Spec, threads: int
) -> int:
    """Write all filmed episodes as a dataset, and return the number of frames.

    Each video stores the spec, and `threads` videos are encoded at the same time.
    """
    import pyarrow as pa
    from pyarrow import parquet

    fps, lengths = spec.config["film.fps"], filmed.rows.steps
    columns = _columns(filmed, trajectories, fps)
    starts = np.concatenate([[0], np.cumsum(lengths)])  # each episode's first step, and the total
    files = list(_files(starts))
    for number, episodes in enumerate(files):
        steps = slice(starts[episodes.start], starts[episodes.stop])
        rows = _table({name: values[steps] for name, values in columns.items()})
        parquet.write_table(rows, _path(folder, _DATA, number))
    with ThreadPoolExecutor(threads) as pool:
        write = partial(_write_video, folder, filmed, spec)
        histograms = np.concatenate(list(pool.map(write, itertools.count(), files)))
    meta = folder / "meta"
    (meta / "episodes/chunk-000").mkdir(parents=True)
    rows = []
    for number, episodes in enumerate(files):
        for episode in episodes:
            start, end = starts[[episode, episode + 1]].tolist()
            stats = {name: _stats(values[start:end]) for name, values in columns.items()}
            stats[_IMAGE] = _image_stats(histograms[episode])
            first, video = int(starts[episodes.start]), f"videos/{_IMAGE}"
            row = {"episode_index": episode, "tasks": [filmed.env], "length": end - start}
            for kind in ("data", video):
                row |= {f"{kind}/chunk_index": 0, f"{kind}/file_index": number}
            row |= {"dataset_from_index": start, "dataset_to_index": end}
            row[f"{video}/from_timestamp"] = (start - first) / fps
            row[f"{video}/to_timestamp"] = (end - first) / fps
            row |= {f"stats/{n}/{key}": v for n, found in stats.items() for key, v in found.items()}
            row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
            rows.append(row | {"seed": int(filmed.rows.seed[episode])})
    parquet.write_table(pa.Table.from_pylist(rows), meta / "episodes/chunk-000/file-000.parquet")
    tasks = pd.Index([filmed.env], dtype=object)
    pd.DataFrame({"task_index": [0]}, index=tasks).to_parquet(meta / "tasks.parquet")
    stats = {name: _stats(values) for name, values in columns.items()}
    stats[_IMAGE] = _image_stats(histograms.sum(axis=0))
    info = _info(lengths, columns, next(filmed.episodes()).cache.background.shape, fps)
    for name, value in (("stats.json", stats), ("info.json", info)):
        (meta / name).write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8")
    total, head = int(lengths.sum()), "tags:\n- LeRobot\ntask_categories:\n- robotics\nconfigs:\n"
    head += "- config_name: default\n  data_files: data/*/*.parquet"
    text = f"---\n{head}\n---\n\n# {filmed.env}\n\n{len(lengths):,} episodes of {filmed.env}, "
    text += f"{total:,} frames: a LeRobot data set, {VERSION}.\n"
    (folder / "README.md").write_text(text, encoding="utf-8")
    return total


def _path(folder: Path, template: str, number: int) -> Path:
    """Return the path of a file in the dataset, and create its folder."""
    path = folder / template.format(video_key=_IMAGE, chunk_index=0, file_index=number)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _files(starts: np.ndarray) -> Iterator[range]:
    """Yield the range of episodes of each file."""
    first = 0
    while first < len(starts) - 1:
        last = min(int(np.searchsorted(starts, starts[first] + _FRAMES)), len(starts) - 1)
        yield range(first, last)
        first = last


def _columns(
    filmed: FilmedEpisodes, trajectories: Sequence[Path], fps: int
) -> dict[str, np.ndarray]:
    """Return the columns of all steps by name, as arrays (steps, numbers)."""
    shards, lengths = [read_trajectories(path) for path in trajectories], filmed.rows.steps
    states = [np.delete(shard.states, shard.offsets[1:] - 1, axis=0) for shard in shards]
    states, actions, rewards = (
        np.concatenate(parts).reshape(lengths.sum(), -1)
        for parts in (states, [s.actions for s in shards], [s.rewards for s in shards])
    )
    steps = ranges(np.zeros_like(lengths), lengths)[:, None]
    numbers = np.repeat(np.arange(len(lengths)), lengths)[:, None]
    done = steps == (lengths - 1)[numbers]
    is_whole = actions.dtype.kind in "iu"
    return {
        **({_STATE: states.astype(np.float32)} if states.shape[1] else {}),
        _ACTION: actions.astype(np.int64 if is_whole else np.float32),
        "next.reward": rewards.astype(np.float32),
        "next.done": done,
        # Without reaches, no outcome counts as success.
        **({"next.success": done & filmed.rows.reached[numbers]} if filmed.unit == "reach" else {}),
        "timestamp": (steps / fps).astype(np.float32),
        "frame_index": steps,
        "episode_index": numbers,
        "index": np.arange(len(steps))[:, None],
        "task_index": np.zeros_like(steps),
    }


def _write_video(
    folder: Path, filmed: FilmedEpisodes, spec: Spec, number: int, episodes: range
) -> np.ndarray:
    """Write a video, and return how often each channel has each value, (episodes, 3, 256)."""
    counts = np.zeros((len(episodes), 3, 256), np.int64)

    def frames() -> Iterator:
        for place, episode in enumerate(filmed.episodes(episodes)):
            for step, frame in enumerate(episode.frames[:-1]):
                image = episode.cache[frame]
                if step % _SAMPLE == 0:
                    for channel in range(3):
                        values = image[..., channel].reshape(-1)
                        counts[place, channel] += np.bincount(values, minlength=256)
                yield planar(image)

    height, width, _ = next(filmed.episodes()).cache.background.shape
    lengths = filmed.rows.steps[episodes.start : episodes.stop].tolist()
    *starts, total = itertools.accumulate(lengths, initial=0)
    keyframes = sorted({*range(0, total, _KEYFRAMES), *starts})
    encoder, comment = spec.config["view_encoder"], spec.extended(file=number).text
    path, fps = _path(folder, _VIDEO, number), spec.config["film.fps"]
    encode_video(path, frames(), (width, height), fps, encoder, comment, keyframes)
    return counts


def _table(rows: Mapping[str, np.ndarray]):
    """Return columns as an Arrow table, with several numbers as lists of fixed size."""
    import pyarrow as pa

    def column(values: np.ndarray):
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        wide = values.shape[1] > 1
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1]) if wide else flat

    return pa.table({name: column(values) for name, values in rows.items()})


def _stats(values: np.ndarray) -> dict[str, list]:
    """Return the statistics of each number of a column (steps, numbers)."""
    numbers = values.astype(np.float64)
    found = {"min": numbers.min(0), "max": numbers.max(0), "mean": numbers.mean(0)}
    found["std"] = numbers.std(0)
    quantiles = np.quantile(numbers, list(_QUANTILES.values()), axis=0)
    found |= dict(zip(_QUANTILES, quantiles, strict=True))
    return {name: value.tolist() for name, value in found.items()} | {"count": [len(values)]}


def _image_stats(counts: np.ndarray) -> dict[str, list]:
    """Return the statistics of frames, scaled to [0, 1], from their histograms (3, 256)."""
    levels, total = np.arange(256) / 255, counts.sum(axis=1)
    mean = counts @ levels / total
    found = {
        "min": levels[(counts > 0).argmax(axis=1)],
        "max": levels[255 - (counts[:, ::-1] > 0).argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(counts @ levels**2 / total - mean**2, 0)),
    }
    share = np.cumsum(counts, axis=1) / total[:, None]
    found |= {name: levels[(share >= part).argmax(axis=1)] for name, part in _QUANTILES.items()}
    shaped = {name: value.reshape(3, 1, 1).tolist() for name, value in found.items()}
    return shaped | {"count": [int(total[0])]}


def _info(
    lengths: np.ndarray, columns: Mapping[str, np.ndarray], shape: tuple[int, ...], fps: int
) -> dict:
    """Return the content of info.json."""
    names = ["height", "width", "channels"]
    video = {f"video.{name}": length for name, length in zip(names, shape, strict=True)}
    video |= {"video.codec": "h264", "video.pix_fmt": "yuv420p", "video.fps": fps}
    video |= {"video.is_depth_map": False, "has_audio": False}
    image = {"dtype": "video", "shape": list(shape), "names": names, "info": video}
    features = {_IMAGE: image}
    for name, values in columns.items():
        word, width = name.rpartition(".")[2], values.shape[1]
        numbered = [f"{word}_{number}" for number in range(width)]
        names = numbered if name in (_STATE, _ACTION) else None
        features[name] = {"dtype": values.dtype.name, "shape": [width], "names": names}
    return {
        "codebase_version": VERSION,
        "robot_type": None,
        "total_episodes": len(lengths),
        "total_frames": int(lengths.sum()),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": _DATA,
        "video_path": _VIDEO,
        "features": features,
    }
