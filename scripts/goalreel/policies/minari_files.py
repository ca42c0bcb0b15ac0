"""A data set of Minari's: where its files are, and what it was recorded in.

Imported while the Snakefile is parsed, so without minari.
"""

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goalreel.environments.gymnasium_ids import id_with_module
from goalreel.errors import OptionError, suggest

_METADATA = "metadata.json"


@dataclass(frozen=True)
class Header:
    """What a data set says of itself."""

    options: dict  # env, env_kwargs, env_wrappers and max_episode_steps of a run that plays it
    episodes: int


def data_folder(dataset: str) -> Path:
    """Return the folder of a data set's data, given that of the data set, or its id.

    Raises GoalreelError if there is none.
    """
    root = Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")
    for folder in (Path(dataset), Path(dataset, "data"), root / dataset / "data"):
        if (folder / _METADATA).is_file():
            return folder
    fix = suggest(dataset, _ids(root)) or f"Download it: minari download {shlex.quote(dataset)}"
    raise OptionError("policy.dataset", f"No dataset {dataset!r} in {root}. {fix}")


def _ids(root: Path) -> Iterator[str]:
    """Yield the ids of the data sets below a folder."""
    for folder, below, _ in os.walk(root):
        if "data" in below:
            below.clear()  # an Arrow data set has a folder for each episode
            yield Path(folder).relative_to(root).as_posix()


def data_files(dataset: str) -> dict[str, Path]:
    """Return a data set's files by their names, the same wherever it is kept.

    Raises GoalreelError if there is none.
    """
    folder = data_folder(dataset)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{dataset}/{path.relative_to(folder).as_posix()}": path for path in files}


def read_header(dataset: str) -> Header:
    """Return what a data set was recorded in.

    Raises GoalreelError if it does not tell, or was recorded with what cannot be made again.
    """
    path = data_folder(dataset) / _METADATA
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        if not metadata.get("env_spec"):
            raise ValueError("it does not say in which environment, having no env_spec")
        # Without its spaces minari asks the environment, which it has the entry point make.
        metadata["observation_space"], metadata["action_space"]
        spec = json.loads(metadata["env_spec"])
        wrappers = spec.get("additional_wrappers") or []
        for wrapper in wrappers:
            if wrapper["kwargs"] is None:
                raise ValueError(f"it does not tell the arguments of the wrapper {wrapper['name']}")
        options = {
            "env": id_with_module(spec["id"], spec["entry_point"]),
            "env_kwargs": {k: v for k, v in spec["kwargs"].items() if k != "render_mode"},
            "env_wrappers": [{one["entry_point"]: one["kwargs"]} for one in wrappers],
            "max_episode_steps": spec.get("max_episode_steps"),
        }
        return Header(options, int(metadata["total_episodes"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OptionError(
            "policy.dataset",
            f"{dataset!r} does not say how it was recorded. Download it again.\n"
            f"  {path}: {type(error).__name__}: {error}",
        ) from None
