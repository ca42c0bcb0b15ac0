"""The run of a check, which plays the episodes of a lock file again.

Imported while the Snakefile is parsed.
"""

from collections.abc import Mapping

from goalreel.configuration.options import Check, Options
from goalreel.policies.parameters import RECORDED
from goalreel.verification.lock_file import Lock, read_lock
from goalreel.workflow.config import results_folder
from goalreel.workflow.suite import with_option

# Options of the user that replace those of the lock file. Others do not affect the episodes.
_REPLACED = ("env", "env_kwargs", "env_wrappers", "max_episode_steps", "policy", "render")
_REPLACED += ("check", "check_determinism", "shard_size")


def changed_options(workflow, options: Mapping) -> dict:
    """Return the options that differ from the defaults or are on the command line."""
    from snakemake.utils import update_config

    changed: dict[str, object] = {}
    for key, default in Options().model_dump().items():
        value = options.get(key, default)
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            value = {k: part for k, part in value.items() if part != default.get(k)}
            default = {}
        changed |= {key: value} if value != default else {}
    update_config(changed, workflow.config_settings.overwrite_config)
    return changed


def locked_options(user_options: Mapping) -> dict:
    """Return the options that play the episodes of a lock file, in a folder of their own.

    user_options: without defaults, such as a new policy

    Raises:
        GoalreelError: the lock file cannot be used.
    """
    check = user_options.get("check")
    path = check.get("file") if isinstance(check, Mapping) else None
    lock, options = read_lock(path or Check().file), {}
    for key, value in lock.options.items():
        options = with_option(options, key, value)
    root = user_options.get("results") or results_folder(options["env"], options["policy"])
    for key in (k for k in user_options if k in _REPLACED or k not in Options.model_fields):
        old, new = options.get(key), user_options[key]
        is_part = isinstance(old, Mapping) and isinstance(new, Mapping)
        is_part = is_part and (key != "policy" or new.get("name", old["name"]) == old["name"])
        options[key] = {**old, **new} if is_part else new
    return options | _episodes(lock, options["policy"]) | {"results": f"{root}/check"}


def _episodes(lock: Lock, policy: object) -> dict:
    """Return the option that chooses the episodes."""
    if isinstance(policy, Mapping) and policy.get("name") in RECORDED:
        return {"episodes": len(lock.episodes)}
    return {"seeds": [episode.seed for episode in lock.episodes]}
