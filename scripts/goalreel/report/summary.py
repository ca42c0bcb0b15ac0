"""Write summary.json: the means of a run with their intervals, and its worst episodes."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import goalreel
from goalreel.files.atomic import write_text
from goalreel.policies.parameters import policy_label
from goalreel.provenance.spec import Spec
from goalreel.report.episode_table import read_table
from goalreel.report.statistics import mean_interval, share_interval
from goalreel.simulation.reaches import has_reached
from goalreel.simulation.trajectories import read_summary

_WORST = 5


def write_summary(
    path: Path, trajectories: Sequence[Path], episodes_csv: Path, all_csv: Path | None, spec: Spec
) -> None:
    """Write the summary of a run.

    `success` counts the episodes that meet the criterion of the option, or all attempts of a run of
    reaches. It is null without a criterion. `all_csv` is the table of all attempts, or of all
    episodes of which the film shows some.
    """
    unit, env = spec.config["unit"], spec.config["env"]
    shards = [read_summary(shard) for shard in trajectories]
    played = shards[0].spec
    columns = (unit, "seed", "return", "steps", "terminated", "truncated")
    rows = read_table(episodes_csv, columns)
    success = spec.config["success_criterion"]
    success = reward_threshold(env) if success is None else success
    counted = rows if all_csv is None else read_table(all_csv, columns)
    shown = rows if unit == "reach" else counted
    digest = hashlib.sha256("".join(shard.digest for shard in shards).encode()).hexdigest()
    worst = rows.sort_values("return", kind="stable").head(_WORST)
    values = {
        "env": env,
        "policy": policy_label(played.config["policy"]),
        "unit": unit,
        "episodes": len(shown),
        "return": _statistics(shown["return"]),
        "steps": _statistics(shown["steps"]),
        "success": None if success is None else _success(counted, success),
        "digests": {"trajectories": digest, **played.value.get("files", {})},
        "versions": {"goalreel": goalreel.__version__, **played.tools},
        # The folder is not in the command, which takes the newest run, so that equal runs in two
        # folders have equal summaries.
        "worst": [
            row | {"replay": f"python scripts/replay.py {row[unit]}"}
            for row in worst[[unit, "seed", "return", "steps"]].to_dict("records")
        ],
    }
    values = json.loads(json.dumps(values), parse_constant=lambda _: None)  # JSON has no NaN
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def _statistics(values: pd.Series) -> dict[str, float | None]:
    """Return the mean with its 95% interval, null for one episode, and the standard deviation."""
    mean, std = mean_interval(values), values.to_numpy().std()
    low, high = (mean.low, mean.high) if len(values) > 1 else (None, None)
    return {"mean": mean.value, "low": low, "high": high, "std": float(f"{std:.6g}")}


def _success(rows: pd.DataFrame, criterion: str | float) -> dict[str, object]:
    endings = (rows[name].to_numpy() for name in ("terminated", "truncated", "return"))
    count = int(has_reached(criterion, *endings).sum())
    bounds = vars(share_interval(count, len(rows))).values()
    rounded = zip(("share", "low", "high"), (float(f"{x:.6g}") for x in bounds), strict=True)
    return {"criterion": criterion, "count": count, "total": len(rows), **dict(rounded)}


def reward_threshold(env: str) -> float | None:
    """Return the return from which Gymnasium takes an environment as solved, None without one."""
    import gymnasium

    try:
        return gymnasium.spec(env).reward_threshold
    except (gymnasium.error.Error, ImportError):  # its package registers it only on make
        return None
