"""Hugging Face's hub: `goalreel.hub.card`, a folder that can be pushed as a model card."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from goalreel.files.atomic import replacing
from goalreel.report.card import evaluation, page, write_card

__all__ = ["card"]


def card(
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
    """Write README.md, replay.mp4 and results.json, and push nothing.

        table = goalreel.film("CartPole-v1", model, episodes=50, to="replay.mp4")
        goalreel.hub.card("card", "replay.mp4", table, "CartPole-v1", "PPO",
                          library="stable-baselines3")

    Args:
        folder: made if it is not there.
        replay: the video.
        table: of the episodes that count, with the columns `return` and `seed`, as `goalreel.film`
            returns it.
        env: the environment's id.
        player: what plays, such as PPO.
        library: what trained it, as the hub spells it; None for another.
        deterministic: whether the policy plays without chance; None leaves it out.
        made: options that the episodes follow from, such as {"seed": 2025}, for the page.

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
