"""Write a model card for the Hugging Face Hub, with a replay video and an evaluation.

The card's metadata contain a `model-index` with the metric `mean_reward`, as huggingface_sb3 writes
it. The Hub lists evaluations of reinforcement learning by this metric.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import yaml

from goalreel.errors import pluralize
from goalreel.policies.parameters import RECORDED


def evaluation(returns: Sequence[float], env: str, deterministic: bool | None) -> dict:
    """Return the content of results.json, without the key is_deterministic if that is unknown."""
    # The deviation is the population's, as in Stable-Baselines3's `evaluate_policy`.
    return {
        "env_id": env,
        "mean_reward": float(np.mean(returns)),
        "std_reward": float(np.std(returns)),
        **({} if deterministic is None else {"is_deterministic": deterministic}),
        "n_eval_episodes": len(returns),
    }


def is_deterministic(policy: Mapping) -> bool | None:
    """Return whether a policy is deterministic, or None for a user's function or a recording."""
    if policy["name"] in ("python", *RECORDED):
        return None
    return policy["name"] != "random" and policy.get("deterministic", not policy.get("epsilon"))


def page(
    results: dict, player: str, library: str | None, shown: list[str], options: Mapping
) -> str:
    """Return the card, README.md, with the results from `evaluation`.

    `player` is the name of the algorithm or policy, such as PPO, and `library` the one that trained
    it, as the Hub names it. `shown` has a line for each episode of the replay. `options`, if any,
    reproduce the episodes.
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
    replay, listing = "\n".join(f"- {line}" for line in shown), ""
    if options:
        plain = json.loads(json.dumps(options))  # YAML cannot dump a spec's own mapping type
        block = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, default_flow_style=None)
        derived = " Each episode's seed is derived from the root seed." if "seed" in options else ""
        listing = f"\nThese options reproduce the episodes.{derived}\n\n```yaml\n{block}```\n"
    return (
        f"---\n{head}---\n\n# {player} plays {env}\n\n"
        f"Mean return over {pluralize(count, 'episode')}: {value.replace('+/-', '±')}.\n\n"
        f"`replay.mp4` shows:\n\n{replay}\n{listing}"
    )
