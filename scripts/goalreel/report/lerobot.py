"""A run as a LeRobot data set, version 3: videos of many episodes, and their steps in Parquet.

A frame is what was seen before an action: an episode of n steps has n, and the picture of its last
state is left out. An episode's frames follow each other in their video without a gap, so that its
times are those of whole frames. Source of fields and files: lerobot 0.4.4 (lerobot/datasets).
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import Spec
from goalreel.simulation.trajectories import Trajectories, read_trajectories
from goalreel.views.filmed_episodes import FilmedEpisodes

VERSION = "v3.0"
_FRAMES = 20_000  # of a file, or more, since it ends with an episode
_CHUNK = 1000  # files of a folder
_KEYFRAMES = 8  # frames from one to the next, so that a frame at random takes few to decode
_SAMPLE = 16  # of so many frames, one is looked at for the statistics of pictures
_IMAGE, _STATE, _ACTION = "observation.image", "observation.state", "action"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_INDICES = ("timestamp", "frame_index", "episode_index", "index", "task_index")


@dataclass(frozen=True)
class _File:
    """What a video holds, and the Parquet file beside it."""

    number: int
    episodes: range
    first: int  # the data set's number of its first frame

    def path(self, template: str) -> str:
        """Return the path of a file in the data set."""
        chunk, file = divmod(self.number, _CHUNK)
        return template.format(video_key=_IMAGE, chunk_index=chunk, file_index=file)


def write_dataset(
    folder: Path, filmed: FilmedEpisodes, trajectories: Sequence[Path], spec: Spec, threads: int
) -> int:
    """Write all filmed episodes as a data set.

    Args:
        folder: an existing one.
        filmed: the run's episodes.
        trajectories: the files of all shards.
        spec: with film.fps and view_encoder; each video keeps it.
        threads: videos that are encoded at the same time, which changes none of them.

    Returns:
        The number of frames.

    Raises:
        GoalreelError: pictures have an odd width or height, or ffmpeg fails.
    """
    import pyarrow as pa

    lengths = filmed.rows.steps
    files = list(_files(lengths))
    with ThreadPoolExecutor(threads) as pool:
        write = lambda file: _write_file(folder, file, filmed, trajectories, spec)  # noqa: E731
        written = list(pool.map(write, files))
    columns = {
        name: np.concatenate([rows[name] for rows, _, _ in written]) for name in written[0][0]
    }
    histograms = np.concatenate([counts for _, counts, _ in written])
    _write_episodes(folder, files, filmed, columns, histograms, spec.config["film.fps"])
    tasks = pa.table({"task_index": [0], "__index_level_0__": [filmed.env]})
    _write_parquet(folder / "meta/tasks.parquet", tasks.replace_schema_metadata(_PANDAS))
    stats = {name: _stats(values) for name, values in columns.items()}
    stats[_IMAGE] = _picture_stats(histograms.sum(axis=0))
    size = written[0][2]
    _write_json(folder / "meta/stats.json", stats)
    _write_json(folder / "meta/info.json", _info(lengths, columns, size, spec.config["film.fps"]))
    (folder / "README.md").write_text(_readme(filmed.env, lengths), encoding="utf-8")
    return int(lengths.sum())


# By which pandas knows that the tasks are the index of their table.
_PANDAS = {
    "pandas": json.dumps(
        {
            "index_columns": ["__index_level_0__"],
            "column_indexes": [],
            "columns": [
                {"name": "task_index", "field_name": "task_index", "pandas_type": "int64",
                 "numpy_type": "int64", "metadata": None},
                {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode",
                 "numpy_type": "object", "metadata": None},
            ],
        }
    )
}  # fmt: skip


def _files(lengths: np.ndarray) -> Iterator[_File]:
    """Yield the files: each ends with the episode that fills it."""
    first = start = 0
    ends = np.cumsum(lengths).tolist()
    number = 0
    for episode, end in enumerate(ends):
        if end - start >= _FRAMES or episode == len(ends) - 1:
            yield _File(number, range(first, episode + 1), start)
            first, start, number = episode + 1, end, number + 1


def _write_file(
    folder: Path, file: _File, filmed: FilmedEpisodes, trajectories: Sequence[Path], spec: Spec
) -> tuple[dict[str, np.ndarray], np.ndarray, tuple[int, ...]]:
    """Write a video and its steps.

    Returns the steps' columns; how often each value is in each channel of the episodes' pictures,
    (episodes, 3, 256); and the shape of a picture.
    """
    places = [filmed.places[episode] for episode in file.episodes]
    rows = _steps(file, places, trajectories, spec.config["film.fps"])
    if filmed.unit == "episode":  # whatever its outcome
        del rows["next.success"]
    _write_parquet(folder / file.path(_DATA), _table(rows))
    counts, shape = np.zeros((len(places), 3, 256), np.int64), (0, 0, 0)

    def pictures() -> Iterator:
        nonlocal shape
        for place, episode in enumerate(filmed.episodes(places)):
            for step, frame in enumerate(episode.frames[:-1]):
                picture = episode.cache[frame]
                shape = picture.shape
                if step % _SAMPLE == 0:
                    for channel in range(3):
                        values = picture[..., channel].reshape(-1)
                        counts[place, channel] += np.bincount(values, minlength=256)
                yield planar(picture)

    first = next(filmed.episodes(places[:1]))
    height, width, _ = first.cache[first.frames[0]].shape
    if width % 2 or height % 2:
        raise GoalreelError(f"yuv420p needs an even width and height, not {width}x{height}")
    lengths = filmed.rows.steps[file.episodes.start : file.episodes.stop]
    ends = np.cumsum(lengths).tolist()
    keyframes = sorted({*range(0, ends[-1], _KEYFRAMES), *([0, *ends[:-1]])})
    path, fps = folder / file.path(_VIDEO), spec.config["film.fps"]
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder, comment = spec.config["view_encoder"], spec.extended(file=file.number).text
    encode_video(path, pictures(), (width, height), fps, encoder, comment, keyframes)
    return rows, counts, shape


def _steps(
    file: _File, places: Sequence[tuple[int, int]], trajectories: Sequence[Path], fps: int
) -> dict[str, np.ndarray]:
    """Return the columns of a file's steps, an array (steps, numbers) each."""
    parts: list[dict[str, np.ndarray]] = []
    number = file.episodes.start
    for shard, group in itertools.groupby(places, key=lambda place: place[0]):
        played = read_trajectories(trajectories[shard])
        for _, index in group:
            parts.append(_episode(played, index, number, fps))
            number += 1
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rows["index"] = file.first + np.arange(len(rows["index"]))[:, None]
    return rows


def _episode(played: Trajectories, index: int, number: int, fps: int) -> dict[str, np.ndarray]:
    """Return the columns of an episode's steps."""
    states, actions, rewards = played.episode(index)
    steps = np.arange(len(rewards))[:, None]
    whole = actions.dtype.kind in "iu"
    last = steps == len(rewards) - 1
    rows = {_STATE: states[:-1].astype(np.float32)} if states.shape[1] else {}
    return rows | {
        _ACTION: actions.reshape(len(rewards), -1).astype(np.int64 if whole else np.float32),
        "next.reward": rewards[:, None].astype(np.float32),
        "next.done": last,
        "next.success": last & played.episodes.reached[index],
        "timestamp": (steps / fps).astype(np.float32),
        "frame_index": steps,
        "episode_index": np.full_like(steps, number),
        "index": steps,
        "task_index": np.zeros_like(steps),
    }


def _table(rows: Mapping[str, np.ndarray]):
    """Return columns as Arrow has them: one number as itself, several as a list of fixed size."""
    import pyarrow as pa

    def column(values: np.ndarray):
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        wide = values.shape[1] > 1
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1]) if wide else flat

    return pa.table({name: column(values) for name, values in rows.items()})


def _write_parquet(path: Path, table) -> None:
    import pyarrow.parquet as parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, compression="snappy")


def _write_json(path: Path, value: Mapping) -> None:
    path.write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8")


def _stats(values: np.ndarray) -> dict[str, list]:
    """Return the statistics of a column, (steps, numbers), for each number."""
    numbers = values.astype(np.float64)
    found = {"min": numbers.min(0), "max": numbers.max(0), "mean": numbers.mean(0)}
    found["std"] = numbers.std(0)
    quantiles = np.quantile(numbers, list(_QUANTILES.values()), axis=0)
    found |= dict(zip(_QUANTILES, quantiles, strict=True))
    return {name: value.tolist() for name, value in found.items()} | {"count": [len(values)]}


def _picture_stats(counts: np.ndarray) -> dict[str, list]:
    """Return the statistics of pictures, 0 to 1, from the counts of each value: (3, 256)."""
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


def _write_episodes(
    folder: Path,
    files: Sequence[_File],
    filmed: FilmedEpisodes,
    columns: Mapping[str, np.ndarray],
    histograms: np.ndarray,
    fps: int,
) -> None:
    """Write the table of episodes: where each one is, and its statistics."""
    import pyarrow as pa

    lengths, rows = filmed.rows.steps, []
    ends = np.cumsum(lengths).tolist()
    for file in files:
        chunk, number = divmod(file.number, _CHUNK)
        for episode in file.episodes:
            start, end = ends[episode] - int(lengths[episode]), ends[episode]
            row = {"episode_index": episode, "tasks": [filmed.env], "length": end - start}
            row |= {"data/chunk_index": chunk, "data/file_index": number}
            row |= {"dataset_from_index": start, "dataset_to_index": end}
            place = f"videos/{_IMAGE}"
            row |= {f"{place}/chunk_index": chunk, f"{place}/file_index": number}
            row[f"{place}/from_timestamp"] = (start - file.first) / fps
            row[f"{place}/to_timestamp"] = (end - file.first) / fps
            stats = {name: _stats(values[start:end]) for name, values in columns.items()}
            stats[_IMAGE] = _picture_stats(histograms[episode])
            row |= {f"stats/{n}/{key}": v for n, found in stats.items() for key, v in found.items()}
            row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
            rows.append(row | {"seed": int(filmed.rows.seed[episode])})
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    _write_parquet(folder / "meta/episodes/chunk-000/file-000.parquet", table)


def _info(
    lengths: np.ndarray, columns: Mapping[str, np.ndarray], shape: tuple[int, ...], fps: int
) -> dict:
    """Return what info.json holds."""
    height, width, channels = shape
    video = {
        "video.height": height,
        "video.width": width,
        "video.codec": "h264",
        "video.pix_fmt": "yuv420p",
        "video.is_depth_map": False,
        "video.fps": fps,
        "video.channels": channels,
        "has_audio": False,
    }
    names = ["height", "width", "channels"]
    image = {"dtype": "video", "shape": list(shape), "names": names, "info": video}
    features = {_IMAGE: image} | {
        name: {
            "dtype": values.dtype.name,
            "shape": [values.shape[1]],
            "names": _names(name, values),
        }
        for name, values in columns.items()
    }
    return {
        "codebase_version": VERSION,
        "robot_type": None,
        "total_episodes": len(lengths),
        "total_frames": int(lengths.sum()),
        "total_tasks": 1,
        "chunks_size": _CHUNK,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": _DATA,
        "video_path": _VIDEO,
        "features": features,
    }


def _names(name: str, values: np.ndarray) -> list[str] | None:
    if name not in (_STATE, _ACTION):
        return None
    word = name.rpartition(".")[2]
    return [f"{word}_{number}" for number in range(values.shape[1])]


def _readme(env: str, lengths: np.ndarray) -> str:
    return (
        "---\ntags:\n- LeRobot\ntask_categories:\n- robotics\nconfigs:\n- config_name: default\n"
        f"  data_files: data/*/*.parquet\n---\n\n# {env}\n\n{len(lengths):,} episodes of {env}, "
        f"{int(lengths.sum()):,} frames: a LeRobot data set, {VERSION}.\n"
    )
