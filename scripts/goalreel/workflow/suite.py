"""A suite: many runs in one workflow, from the axes of the option `suite`."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from goalreel.configuration.options import Options
from goalreel.configuration.schema import config_error
from goalreel.errors import OptionError, quoted, suggest
from goalreel.policies.parameters import POLICY_FILES, is_trained_here
from goalreel.provenance.spec import folder_name
from goalreel.workflow.config import with_policy_section

_LISTED = ("runs", "rl_zoo")  # keys of a suite that list its runs instead of an axis
_OWN = ("checkpoint", "training_seed")  # axes that are no options
# A run has its own results folder, and no suite.
_AXES = (*_OWN, *(key for key in Options.model_fields if key not in ("suite", "results")))
_SEEDS = ("training_seed", "train.seed")  # axes of several trainings
_STEPS = re.compile(r"\d+")


@dataclass(frozen=True)
class SuiteRun:
    """A run: the user's options for it, and its place in the matrix of results."""

    options: Mapping
    row: str = ""  # its environment, and the values of other axes that are not of its policy
    column: str = ""  # its policy, or the steps of its checkpoint
    training_seed: str | None = None  # several trainings share a row and a column
    is_checkpoint: bool = False


def expand(user_options: Mapping) -> dict[str, SuiteRun]:
    """Return the runs of a configuration by name: without a suite a single run, ""."""
    suite = user_options.get("suite")
    if suite in (None, "null"):
        return {"": SuiteRun(dict(user_options))}
    common = {key: value for key, value in user_options.items() if key not in ("suite", "results")}
    runs: dict[str, SuiteRun] = {}
    root = str(user_options.get("results") or "results").rstrip("/")
    try:
        for name, changes, labels in _runs(suite):
            folder = folder_name(name)
            if folder in runs:
                problem = f"Two runs have the name {folder!r}. Rename one of them."
                raise OptionError("suite", problem)
            run = common | {"results": f"{root}/{folder}"}
            # Whole sections come before single options in them.
            for option, value in sorted(changes.items(), key=lambda item: "." in _key(item[0])):
                if (first := str(option).partition(".")[0]) not in _AXES:
                    is_option = first in Options.model_fields
                    problem = "It cannot differ between runs." if is_option else "Unknown option."
                    hint = "" if is_option else suggest(first, (*_AXES, *_LISTED))
                    fix = hint or "Name another option."
                    raise OptionError(f"suite.{option}", f"{problem} {fix}")
                if option != "training_seed":  # which {training_seed} and train.seed stand for
                    run = with_option(run, _key(option), value)
            if "training_seed" in changes and _is_trained_here(run):
                run = with_option(run, "train.seed", changes["training_seed"])
            runs[folder] = _place(run, labels)
        axis = next((axis for axis in _SEEDS if axis in suite), None)
        has_seeds = axis and "{training_seed}" not in str(suite)
        if has_seeds and not any(_is_trained_here(run.options) for run in runs.values()):
            problem = "No value has {training_seed}, so all trainings are the same"
            fix = "Write file: logs/{training_seed}.zip, or policy: [trained]."
            raise OptionError(f"suite.{axis}", f"{problem}. {fix}")
        runs = _without_copies(runs)
        if not runs:
            raise OptionError("suite", "It has no runs. Write suite={env: [A, B]}.")
    except OptionError as error:
        raise config_error({error.key: error.message}) from None
    # Runs that the suite lists may differ in other options than their policy.
    cells = Counter((run.row, run.column, run.training_seed) for run in runs.values())
    for name, run in runs.items():
        if cells[run.row, run.column, run.training_seed] > 1:
            runs[name] = replace(run, column=name)
    return runs


def _without_copies(runs: Mapping[str, SuiteRun]) -> dict[str, SuiteRun]:
    """Return runs with one of each policy that is the same for all seeds of trainings."""
    kept, found = {}, {}
    for name, run in runs.items():
        played = {k: v for k, v in run.options.items() if k not in ("results", "train")}
        first = found.setdefault(str(played), name)
        if run.training_seed is None or _is_trained_here(run.options) or first == name:
            kept[name] = run
        else:
            kept[first] = replace(kept[first], training_seed=None)
    return kept


def _place(options: dict, labels: Mapping[str, str]) -> SuiteRun:
    """Return a run in its row and column, from the labels of its axes, or else its options."""
    kinds = {axis: axis.partition(".")[0] for axis in labels}
    across = next((kind for kind in ("checkpoint", "policy") if kind in kinds.values()), None)
    columns = [labels[axis] for axis, kind in kinds.items() if kind == across]
    rows = [labels[axis] for axis, kind in kinds.items() if axis not in _SEEDS and kind != across]
    if across == "checkpoint":
        columns = [str(int(steps)) for steps in columns]
    return SuiteRun(
        options,
        ", ".join(rows) or _label(options.get("env") or "MountainCar-v0"),
        ", ".join(columns) or _label(options.get("policy") or "policy"),
        next((labels[axis] for axis in _SEEDS if axis in labels), None),
        across == "checkpoint",
    )


def _is_trained_here(options: Mapping) -> bool:
    """Return whether a run with these options trains its policy."""
    policy = options.get("policy")
    section = policy if isinstance(policy, Mapping) else {"name": policy}
    return is_trained_here({"name": None, **section})


def _runs(suite: object) -> Iterator[tuple[str, dict[str, object], dict[str, str]]]:
    """Yield the name of each run, its options by their dotted keys, and its labels by axis."""
    axes = _mapping("suite", suite, "suite={env: [A, B]}")
    listed = _mapping("suite.runs", axes.pop("runs", {}), "runs: {NAME: {env: ID}}")
    for name, changes in listed.items():
        yield str(name), _mapping(f"suite.runs.{name}", changes, "{env: ID}"), {}
    if "rl_zoo" in axes:
        yield from _zoo_runs(axes.pop("rl_zoo"))
    if axes:
        by_label = {option: _values_by_label(option, values) for option, values in axes.items()}
        for point in itertools.product(*(values.items() for values in by_label.values())):
            labels = dict(zip(axes, (label for label, _ in point), strict=True))
            changes = dict(zip(axes, (value for _, value in point), strict=True))
            yield "-".join(labels.values()), _fill_in(changes, labels), labels


def _key(axis: object) -> str:
    """Return the dotted key of the option of an axis."""
    return "policy.file" if axis == "checkpoint" else str(axis)


def _mapping(key: str, value: object, example: str) -> dict:
    """Return a value that must be a mapping."""
    if not isinstance(value, Mapping):
        raise OptionError(key, f"{quoted(value)} is not a mapping. Write {example}.")
    return dict(value)


def _values_by_label(option: str, values: object) -> dict[str, object]:
    """Return the values of an axis by their labels, which become parts of run names."""
    key = f"suite.{option}"
    if option == "checkpoint":
        if not isinstance(values, str):
            problem = f"{quoted(values)} is not a pattern"
            raise OptionError(key, f"{problem}. Write one such as logs/rl_model_*_steps.zip.")
        return _checkpoints(values)
    if isinstance(values, Mapping):
        found = {str(label): value for label, value in values.items()}
    elif isinstance(values, list):
        found = {_label(value): value for value in values}
        if len(found) < len(values):
            raise OptionError(key, "Two values have the same name. Write NAME: VALUE for each.")
    else:
        raise OptionError(key, f"{quoted(values)} is not a list. Write [A, B] or {{NAME: VALUE}}.")
    if not found:
        raise OptionError(key, "The axis has no values. Add one, or remove the axis.")
    return found


def _label(value: object) -> str:
    if isinstance(value, Mapping):
        named = value.get("file") or value.get("dataset") or value.get("name")
        value = named or "-".join(map(str, value.values()))
    is_file = isinstance(value, str) and Path(value).suffix in (*POLICY_FILES, ".npz", ".csv")
    return Path(value).stem if is_file else str(value)


def _checkpoints(pattern: str) -> dict[str, object]:
    """Return the files that match a pattern, by their number of steps in ascending order."""
    root, files = Path(pattern).anchor, {}
    try:
        paths = sorted(Path(root).glob(pattern.removeprefix(root)))
    except (ValueError, NotImplementedError) as error:
        raise OptionError("suite.checkpoint", f"{error}. Correct {quoted(pattern)}.") from None
    for path in paths:
        if found := _STEPS.findall(path.stem):
            if other := files.get(int(found[-1])):
                problem = f"{other} and {path} have the same steps. Name files of one training."
                raise OptionError("suite.checkpoint", problem)
            files[int(found[-1])] = str(path)
    if not files:
        problem = f"No file matches {quoted(pattern)}. Correct it.\n  Searched: {Path.cwd()}"
        raise OptionError("suite.checkpoint", problem)
    width = len(str(max(files)))
    return {f"{steps:0{width}d}": files[steps] for steps in sorted(files)}


def _zoo_runs(folder: object) -> Iterator[tuple[str, dict[str, object], dict[str, str]]]:
    """Yield a run for each model ALGORITHM/ENV_NUMBER in an RL Zoo folder, as `_runs` does."""
    models = sorted(Path(str(folder)).glob("*/*_*/*/args.yml"))
    for arguments in models:
        model, env = arguments.parent.parent, arguments.parent.name
        number = model.name.removeprefix(f"{env}_")
        algorithm, env_id = model.parent.name, re.sub(r"^ALE-", "ALE/", env)
        labels = {"env": env_id, "policy": algorithm, "training_seed": number}
        changes = {"env": env_id, "policy": {"name": "sb3", "file": str(model)}}
        yield f"{env}-{algorithm}-{number}", changes, labels
    if not models:
        problem = f"{quoted(str(folder))} has no model of RL Zoo (ALGORITHM/ENV_1/ENV/args.yml)"
        raise OptionError("suite.rl_zoo", f"{problem}. Correct the folder.")


def _fill_in(value: object, labels: Mapping[str, str]) -> object:
    """Return a value with the labels of other axes instead of placeholders such as {env}."""
    if isinstance(value, Mapping):
        return {key: _fill_in(part, labels) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill_in(part, labels) for part in value]
    if isinstance(value, str):
        for option, label in labels.items():
            value = value.replace(f"{{{option}}}", label.replace("/", "-"))
    return value


def with_option(run: Mapping, option: str, value: object) -> dict:
    """Return the options of a run with a new value for a dotted key."""
    key, _, inner_key = option.partition(".")
    if not inner_key:
        return {**run, key: value}
    section = with_policy_section(run).get(key)
    if not isinstance(section, Mapping | None):
        return dict(run)  # the check of its options reports it
    return {**run, key: with_option(section or {}, inner_key, value)}
