"""The environments that episodes are played in, made from a stage's configuration."""

from collections.abc import Mapping


def make_environment(config: Mapping):
    """Return the environment of a stage's configuration: env, env_kwargs, max_steps.

    The latter two keys may be missing, for an environment as it is registered.
    """
    from goalreel.environments.registry import describe

    env, kwargs = config["env"], config.get("env_kwargs") or {}
    if describe(env).computed:
        from goalreel.environments.physics import ENVIRONMENTS

        return ENVIRONMENTS[env].changed(config.get("max_steps"), kwargs.get("goal_velocity", 0.0))
    from goalreel.environments.gymnasium_env import GymEnvironment

    return GymEnvironment.of(config)
