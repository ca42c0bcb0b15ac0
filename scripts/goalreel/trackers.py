"""Send recorded videos to an experiment tracker, with the return and length of the episode.

    env = goalreel.RecordVideo(env, "videos", on_video=goalreel.trackers.to_wandb)

Every recorder takes these functions as `on_video`. Each imports its tracker when it is called.
"""

import importlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path


def to_wandb(path: str, episode: int, info: Mapping) -> None:
    """Log a video to the current run of Weights & Biases."""
    wandb = importlib.import_module("wandb")
    wandb.log({"video": wandb.Video(path, format="mp4"), "episode": episode, **_numbers(info)})


def to_trackio(path: str, episode: int, info: Mapping) -> None:
    """Log a video to the current run of trackio."""
    trackio = importlib.import_module("trackio")
    trackio.log({"video": trackio.Video(path), "episode": episode, **_numbers(info)})


def to_mlflow(path: str, episode: int, info: Mapping) -> None:
    """Log a video to the artifacts of the current run of MLflow, and its numbers as metrics."""
    mlflow = importlib.import_module("mlflow")
    mlflow.log_artifact(path, "videos")
    mlflow.log_metrics(_numbers(info), step=episode)


def to_tensorboard(writer: object) -> Callable[[str, int, Mapping], None]:
    """Return a function that adds videos to a writer, PyTorch's SummaryWriter, as GIFs.

    The writer's own `add_video` needs an old moviepy.
    """
    protos = importlib.import_module("tensorboard.compat.proto.summary_pb2")

    def add(path: str, episode: int, info: Mapping) -> None:
        from goalreel.films.saved_film import save_film

        for name, number in _numbers(info).items():
            writer.add_scalar(f"video/{name}", number, episode)
        with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
            gif = Path(folder, "video.gif")
            save_film(Path(path), gif)
            image = protos.Summary.Image(encoded_image_string=gif.read_bytes(), colorspace=3)
        value = protos.Summary.Value(tag="video", image=image)
        writer.file_writer.add_summary(protos.Summary(value=[value]), episode)

    return add


def _numbers(info: Mapping) -> dict[str, float]:
    """Return the return and length of an episode, if they are known."""
    return {name: float(info[name]) for name in ("return", "length") if info.get(name) is not None}
