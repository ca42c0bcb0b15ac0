"""A model card as Hugging Face's hub shows it: a replay, an evaluation, and the page of both.

The page's metadata are those that the hub lists evaluations of reinforcement learning by, as
huggingface_sb3 writes them: `model-index`, with the metric `mean_reward`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from goalreel.errors import pluralize
from goalreel.files.atomic import replacing
from goalreel.policies.parameters import RECORDED

LIBRARIES = {"sb3": "stable-baselines3"}  # by the policy's name, as the hub spells them


def evaluation(returns: Sequence[float], env: str, deterministic: bool | None) -> dict:
    """Return the content of results.json.

    The standard deviation is that of these episodes themselves, as Stable-Baselines3's
    `evaluate_policy` has it.

    Args:
        returns: (episodes,) of all episodes of the run.
        env: the environment's id.
        deterministic: whether the policy plays without chance; None if that is unknown.
    """
    return {
        "env_id": env,
        "mean_reward": float(np.mean(returns)),
        "std_reward": float(np.std(returns)),
        **({} if deterministic is None else {"is_deterministic": deterministic}),
        "n_eval_episodes": len(returns),
    }


def is_deterministic(policy: Mapping) -> bool | None:
    """Return whether a policy plays without chance; None of a user's function or a recording."""
    if policy["name"] in ("python", *RECORDED):
        return None
    return policy["name"] != "random" and policy.get("deterministic", not policy.get("epsilon"))


def page(
    results: dict, player: str, library: str | None, shown: Sequence[str], made: Mapping
) -> str:
    """Return the card, README.md.

    Args:
        results: of `evaluation`.
        player: what plays, such as PPO.
        library: what trained it, by the hub's spelling; None for another.
        shown: a line for each episode of the replay.
        made: the options that the episodes follow from; may be empty.
    """
    env, count = results["env_id"], results["n_eval_episodes"]
    value = f"{results['mean_reward']:.2f} +/- {results['std_reward']:.2f}"
    tags = [env, "deep-reinforcement-learning", "reinforcement-learning"]
    task = {"type": "reinforcement-learning", "name": "reinforcement-learning"}
    metric = {"type": "mean_reward", "value": value, "name": "mean_reward", "verified": False}
    entry = {"task": task, "dataset": {"name": env, "type": env}, "metrics": [metric]}
    metadata = {"library_name": library} if library else {}
    metadata["tags"] = [*tags, library] if library else tags
    metadata["model-index"] = [{"name": player, "results": [entry]}]
    head = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    replay, options = "\n".join(f"- {line}" for line in shown), ""
    if made:
        plain = json.loads(json.dumps(made))  # a spec's mappings are of a class of their own
        block = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, default_flow_style=None)
        derived = " Each episode's seed is derived from the root seed." if "seed" in made else ""
        options = f"\nThese options reproduce the episodes.{derived}\n\n```yaml\n{block}```\n"
    return (
        f"---\n{head}---\n\n# {player} plays {env}\n\n"
        f"Mean return over {pluralize(count, 'episode')}: {value.replace('+/-', '±')}.\n\n"
        f"`replay.mp4` shows:\n\n{replay}\n{options}"
    )


def write_card(folder: Path, readme: str, results: dict) -> None:
    """Write README.md and results.json into a folder."""
    text = json.dumps(results, indent=2) + "\n"
    for name, content in (("README.md", readme), ("results.json", text)):
        with replacing(folder / name) as temporary:
            temporary.write_text(content, encoding="utf-8")
