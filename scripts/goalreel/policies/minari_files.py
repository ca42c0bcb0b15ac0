"""Find the files of a Minari dataset, and read the environment that it was recorded in.

The Snakefile imports this module, so it does not import minari.
"""

import json
import os
import shlex
from pathlib import Path

from goalreel.environments.gymnasium_ids import id_with_module
from goalreel.errors import OptionError, suggest

_METADATA = "metadata.json"


def data_folder(dataset: str) -> Path:
    """Return a dataset's data folder, given its id or either folder. Raises OptionError."""
    root = Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")
    for folder in (Path(dataset), Path(dataset, "data"), root / dataset / "data"):
        if (folder / _METADATA).is_file():
            return folder
    known = (folder.parent.relative_to(root).as_posix() for folder in root.rglob("data"))
    fix = suggest(dataset, known) or f"Download it: minari download {shlex.quote(dataset)}"
    raise OptionError("policy.dataset", f"No dataset {dataset!r} in {root}. {fix}")


def data_files(dataset: str) -> dict[str, Path]:
    """Return a dataset's files by name; a name does not depend on where the dataset is stored.

    Raises GoalreelError if there is no such dataset.
    """
    folder = data_folder(dataset)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{dataset}/{path.relative_to(folder).as_posix()}": path for path in files}


def read_header(dataset: str) -> tuple[dict, int]:
    """Return env, env_kwargs, env_wrappers and max_episode_steps of a dataset, and its episodes.

    Raises GoalreelError if the metadata is incomplete, such as a wrapper without its arguments.
    """
    path = data_folder(dataset) / _METADATA
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        if not metadata.get("env_spec"):
            raise ValueError("there is no env_spec")
        # Without them, minari would create the environment, by any entry point, to get its spaces.
        metadata["observation_space"], metadata["action_space"]
        spec = json.loads(metadata["env_spec"])
        wrappers = spec.get("additional_wrappers") or []
        for wrapper in (wrapper for wrapper in wrappers if wrapper["kwargs"] is None):
            raise ValueError(f"the wrapper {wrapper['name']} has no arguments")
        options = {
            "env": id_with_module(spec["id"], spec["entry_point"]),
            "env_kwargs": {k: v for k, v in spec["kwargs"].items() if k != "render_mode"},
            "env_wrappers": [{w["entry_point"]: w["kwargs"]} for w in wrappers],
            "max_episode_steps": spec.get("max_episode_steps"),
        }
        return options, int(metadata["total_episodes"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{dataset!r} does not say how it was recorded. Download it again."
        cause = f"{path}: {type(error).__name__}: {error}"
        raise OptionError("policy.dataset", f"{problem}\n  {cause}") from None
