"""The packages and user files that a policy depends on.

The Snakefile imports this module, so it imports little.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from goalreel.environments.gymnasium_ids import with_imports
from goalreel.errors import GoalreelError, OptionError, needs_package
from goalreel.policies.minari_files import data_files
from goalreel.policies.parameters import ALGORITHMS, is_trained_here
from goalreel.provenance.checksums import sha256_of
from goalreel.provenance.spec import Spec


def policy_files(policy: Mapping) -> dict[str, str]:
    """Return the sha256 of each file that a checked `policy` section names, by its path.

    A Python file comes with the modules in its folder that it imports, directly or indirectly.
    Paths are relative to the working directory. Raises GoalreelError if a file is missing.
    """
    named = {key: policy[key] for key in ("file", "vecnormalize") if policy.get(key)}
    named |= {f"extra_files.{i}": path for i, path in enumerate(policy.get("extra_files", ()))}
    weights = f"{policy.get('file')}.data"  # where PyTorch's exporter puts those of an ONNX file
    named |= {"file.data": weights} if policy["name"] == "onnx" and Path(weights).is_file() else {}
    digests = {}
    for key, path in named.items():
        try:
            python = key == "file" and policy["name"] == "python"
            paths = with_imports(Path(path)) if python else [Path(path)]
            digests |= {str(p): sha256_of(p) for p in paths}
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a valid path"
            problem = f"{path!r} cannot be read ({reason})"
            fix = "Give a path relative to the folder where you run snakemake."
            raise OptionError(f"policy.{key}", f"{problem}. {fix}") from None
    dataset = data_files(policy["dataset"]) if policy.get("dataset") else {}
    return digests | {name: sha256_of(path) for name, path in dataset.items()}


def own_network(policy: Mapping, train: Mapping) -> str:
    """Return the user's network "module:callable" that a policy plays, "" if it plays no such."""
    if policy["name"] != "trained":
        return ""
    if is_trained_here(policy):
        network = train["network"]
    else:
        from goalreel.policies.network_file import read_checkpoints  # it takes NumPy

        network = read_checkpoints(policy["file"]).settings["module"]
    return network if isinstance(network, str) and ":" in network else ""


def policy_tools(policy: Mapping) -> tuple[str, ...]:
    """Return the packages, apart from NumPy, whose versions affect the actions of a policy.

    Raises GoalreelError if one is not installed.
    """
    name = policy["name"]
    needed = {"minari": {"minari": "minari[hdf5]"}, "onnx": {"onnxruntime": ""}}.get(name, {})
    if name == "sb3":
        needed = dict.fromkeys(("stable-baselines3", ALGORITHMS[policy["algorithm"]]), "")
    for package, requirement in needed.items():
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise OptionError("policy.name", needs_package(repr(name), package, requirement))
    return () if name == "minari" else (*needed, *(["torch"] if name == "sb3" else []))


def check_files(spec: Spec, found: Mapping[str, str]) -> None:
    """Raise GoalreelError if a user's file, `found` by its sha256, changed after the planning."""
    planned = spec.value.get("files", {})  # a spec written by hand may lack them
    for name, digest in found.items():
        if planned.get(name, digest) != digest:
            raise GoalreelError(f"{name}: The file changed after the run started.")
