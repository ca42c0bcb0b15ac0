"""`goalreel.hub.model_card`, which writes a model card for the Hugging Face Hub."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from goalreel.files.atomic import replacing
from goalreel.report.model_card import evaluation, page, write_card

__all__ = ["model_card"]


def model_card(
    folder: str | Path,
    replay: str | Path,
    table: pd.DataFrame,
    env: str,
    player: str,
    *,
    library: str | None = None,
    deterministic: bool | None = None,
    made: Mapping | None = None,
) -> Path:
    """Write README.md, replay.mp4 and results.json to a folder, which you can then push.

        table = goalreel.film("CartPole-v1", model, episodes=50, to="replay.mp4")
        goalreel.hub.model_card("model_card", "replay.mp4", table, "CartPole-v1", "PPO",
                                library="stable-baselines3")

    Args:
        folder: created if it does not exist.
        replay: the video.
        table: a row per evaluated episode with the columns `return` and `seed`, such as the table
            that `goalreel.film` returns.
        env: the environment's id.
        player: the name of the policy, such as PPO.
        library: the library that trained it, as the Hub spells it, or None for others.
        deterministic: whether the policy is deterministic, or None to omit it.
        made: options of the run that the page lists, such as {"seed": 2025}.

    Returns:
        The folder.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results = evaluation(table["return"].to_numpy(), env, deterministic)
    shown = [f"Episodes of the seeds {table['seed'].min()} to {table['seed'].max()}"]
    write_card(folder, page(results, player, library, shown, made or {}), results)
    with replacing(folder / "replay.mp4") as temporary:
        shutil.copyfile(replay, temporary)
    return folder
