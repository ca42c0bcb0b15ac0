"""The run of a check, which plays the episodes of a lock file again."""

from collections.abc import Mapping

from goalreel.configuration.options import Check, Options
from goalreel.policies.parameters import RECORDED
from goalreel.verification.lock_file import read_lock
from goalreel.workflow.config import results_folder

# Options that a check takes only from the lock file, or that do not affect the episodes.
_KEPT = {*Options.model_fields} - {"check", "check_determinism", "env", "env_kwargs"}
_KEPT -= {"env_wrappers", "max_episode_steps", "policy", "render", "shard_size", "sticky_actions"}


def locked_options(user_options: Mapping) -> dict:
    """Return the options that play the episodes of a lock file, with the user's changes."""
    check = user_options.get("check")
    path = check.get("file") if isinstance(check, Mapping) else None
    facts, episodes = read_lock(path or Check().file)
    options = facts["options"]
    root = user_options.get("results") or results_folder(options["env"], options["policy"])
    for key in user_options.keys() - _KEPT:
        old, new = options.get(key), user_options[key]
        is_part = isinstance(old, Mapping) and isinstance(new, Mapping)
        is_part = is_part and (key != "policy" or new.get("name", old["name"]) == old["name"])
        options[key] = {**old, **new} if is_part else new
    policy, seeds = options["policy"], [episode.seed for episode in episodes]
    is_recorded = isinstance(policy, Mapping) and policy.get("name") in RECORDED
    chosen = {"episodes": len(seeds)} if is_recorded else {"seeds": seeds}
    return options | chosen | {"results": f"{root}/check"}
