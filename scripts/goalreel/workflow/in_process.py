"""`goalreel.film`: a small film in one call, by the stages' own programs, one after another."""

import contextlib
import io
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.cli import WORKFLOW, program
from goalreel.environments.gymnasium_ids import class_fps, instance_fps
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.policies.parameters import is_trained_here
from goalreel.simulation import given_policy
from goalreel.workflow.config import film_fps, load_config
from goalreel.workflow.plan import Plan
from goalreel.workflow.stages import FILM

if TYPE_CHECKING:
    import gymnasium
    import pandas

_SCRIPTS = WORKFLOW / "scripts"
# A stage loads a policy from a file: this one, the same in every process, takes what `film` was
# given, which one call at a time lends it.
_PLAYER = Path(given_policy.__file__)
_LOCK = threading.Lock()


def film(
    env: "str | gymnasium.Env",
    policy: "str | Mapping | Callable | object" = "random",
    *,
    episodes: int = 10,
    to: str | Path = "film.mp4",
    seed: int = 2025,
    **options: object,
) -> "pandas.DataFrame":
    """Film what a policy does, with captions and chapters, and return the table of its episodes.

        goalreel.film("CartPole-v1", lambda obs: int(obs[2] > 0), episodes=20, to="cart.mp4")

    The stages are the workflow's, here in this process: the same configuration gives the same film,
    byte for byte. For thousands of episodes `snakemake` uses all cores, and goes on after a stop.

    Args:
        env: an id, or an environment of gymnasium.make, of which one like it is made anew.
        policy: a name or a section `policy` of the configuration; or a function of an observation
            that returns an action; or a model with Stable-Baselines3's `predict`, asked for its
            deterministic action. An action must depend on the observation alone.
        episodes: how many, whatever their outcome; `reaches` and `seeds` take its place.
        to: the film to write, .mp4.
        seed: the root seed, from which each episode's seed is derived.
        options: of the configuration, such as success=18 or overlay={"hud": True}.

    Returns:
        A row for each filmed episode: seed, steps, return, outcome, its place in the film, ...

    Raises:
        GoalreelError: an option is wrong, the policy must be trained first, or a stage fails.

    """
    if Path(to).suffix != ".mp4":
        raise GoalreelError(f"to: {str(to)!r} is not an .mp4 file. Write to='film.mp4'.")
    given = {"env": env} if isinstance(env, str) else _named(env)
    given |= {} if {"reaches", "seeds"} & set(options) else {"episodes": episodes}
    with _LOCK, tempfile.TemporaryDirectory(prefix="goalreel-") as name:
        folder = Path(name)
        if not isinstance(policy, str | Mapping):
            given_policy.given = policy if callable(policy) else _predicting(policy)
            policy = {"name": "file", "file": str(_PLAYER)}
        config = load_config({**given, "policy": policy, "seed": seed, **options})
        if is_trained_here(config["policy"]):
            raise GoalreelError(
                f"policy.name: {config['policy']['name']} is trained first: run snakemake"
            )
        is_made_first = not describe(config["env"]).computed and not class_fps(config["env"])
        if is_made_first and (own := instance_fps(config["env"], config["env_kwargs"])):
            config["film"] |= {"fps": film_fps(own)} if "fps" not in options.get("film", {}) else {}
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # the stages' log
                table = _make(Plan(config | {"results": name}, _SCRIPTS))
        except GoalreelError as error:  # of a function, which the file stands for
            told = str(error).replace(f"policy.function: {_PLAYER}: make_policy: ", "policy: ")
            raise GoalreelError(told) from None
        finally:
            given_policy.given = None
        with replacing(to) as temporary:
            shutil.copyfile(folder / "film.mp4", temporary)
    return table


def _make(plan: Plan) -> "pandas.DataFrame":
    """Run the stages of a film in their order; return the table of its episodes."""
    import pandas

    for stage in FILM:
        if stage in plan.stages:
            for arguments in plan.jobs(stage):
                program(stage).main(arguments)
    return pandas.read_csv(Path(plan.results, "episodes.csv"), low_memory=False)


def _predicting(model: object) -> Callable:
    """Return a model's deterministic policy. Raises GoalreelError if it is no model."""
    if not hasattr(model, "predict"):
        raise GoalreelError(
            f"policy: {model!r}; allowed: the name of a policy, a section `policy`, a function of "
            f"an observation, or a model with `predict`"
        )
    return lambda observation: model.predict(observation, deterministic=True)[0]


def _named(env: "gymnasium.Env") -> dict:
    """Return the configuration of an environment that gymnasium.make has made."""
    spec = getattr(env, "spec", None)
    if spec is None:
        raise GoalreelError(f"env: {env!r} was not made by gymnasium.make; give its id")
    kwargs = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    wrappers = [{one.entry_point: one.kwargs or {}} for one in spec.additional_wrappers]
    limit = spec.max_episode_steps
    return {"env": spec.id, "env_kwargs": kwargs, "env_wrappers": wrappers, "max_steps": limit}
