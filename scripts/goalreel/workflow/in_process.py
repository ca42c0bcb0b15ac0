"""`goalreel.film` and `goalreel.check`: run the stages of a small run in this process."""

import contextlib
import inspect
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.cli import WORKFLOW, logging_to, program, say
from goalreel.environments.gymnasium_env import GymnasiumEnvironment, layers
from goalreel.environments.gymnasium_instance import close_instance
from goalreel.environments.wrappers import apply_wrappers, find_wrapper
from goalreel.errors import GoalreelError, quoted
from goalreel.films.saved_film import SavedFilm, check_format, save_film
from goalreel.policies.parameters import is_trained_here
from goalreel.rendering.captions import outcome
from goalreel.workflow.config import load_config, locked_options
from goalreel.workflow.plan import Plan
from goalreel.workflow.stages import FILM

if TYPE_CHECKING:
    import gymnasium

    from goalreel.verification.check_result import CheckResult

_SCRIPTS = WORKFLOW / "scripts"
_PLAYED = ("import_recording", "simulate", "atlas", "render")  # stages that a check needs
# pygame.gfxdraw fills polygons in one buffer per process, without the GIL.
_DRAWING = threading.RLock()
# Wrappers that do not record their arguments, and need none for a film.
_WITHOUT_ARGUMENTS = ("stable_baselines3.common.monitor:Monitor",)


def film(
    env: "str | gymnasium.Env | Callable[[], gymnasium.Env]",
    policy: "str | Mapping | Callable | object" = "random",
    *,
    episodes: int = 10,
    to: str | Path = "film.mp4",
    seed: int = 2025,
    log: Callable[[str], object] | None = None,
    progress: Callable | None = None,
    **options: object,
) -> SavedFilm:
    """Film episodes of a policy, with captions and chapters.

    The film has the same bytes as that of the workflow with the same configuration. For thousands
    of episodes run `snakemake`, which uses all cores and can resume. You may call `film` from
    several threads.

    Examples:
        >>> import goalreel
        >>> policy = lambda observation: int(observation[2] > 0)
        >>> film = goalreel.film("CartPole-v1", policy, episodes=20, to="cart.mp4")

    Args:
        env: an environment id, or an environment that gymnasium.make returned, or a function that
            returns one; goalreel makes new ones like it.
        policy: a policy name, a section `policy` of the configuration, a function that maps an
            observation to an action, or a model with Stable-Baselines3's `predict`, which chooses
            deterministic actions. Actions must depend only on the observation. A function named
            `make_policy` returns such a function for each episode, which may keep a state.
        episodes: the number of episodes. You can pass `reaches` or `seeds` instead.
        to: the path of the film, which ends in .mp4, .gif or .webp.
        seed: the root seed, from which each episode's seed is derived.
        log: called with each line of the log, such as `print` or `logger.info`.
        progress: makes a progress bar, such as `tqdm.tqdm`. It is called with `total` and `unit`
            and returns an object with `update(n)` and `close()`.
        options: other options of the configuration, such as success=18 or overlay={"hud": True}.

    Returns:
        The film, with `path`, `episodes` and `table`, a data frame of a row for each episode, whose
        `outcome` is the word of captions. A notebook shows it, playable.

    Raises:
        GoalreelError: an option is wrong, the policy must be trained first, or a stage fails.
    """
    import pandas

    check_format(to)
    env = env() if callable(env) else env
    chosen = {"env": env} if isinstance(env, str) else _options_of(env)
    chosen |= {} if {"reaches", "seeds"} & set(options) else {"episodes": episodes}
    config, player = _load({**chosen, "seed": seed, **options}, policy)
    if is_trained_here(config["policy"]):
        name = config["policy"]["name"]
        raise GoalreelError(f"policy.name: {name!r} must be trained first. Run snakemake.")
    with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
        plan = Plan(config | {"results": folder}, _SCRIPTS)
        with _counting(progress, plan.run.count, plan.run.unit) as count:
            _make(plan, FILM, player, log, count)
        save_film(Path(folder, "film.mp4"), to)
        table = pandas.read_csv(Path(folder, "episodes.csv"), low_memory=False)
    table["outcome"] = [outcome(row, plan.run.unit) for row in table.to_dict("records")]
    first = ["reach", "episode", "return", "steps", "outcome", "seed"]
    columns = dict.fromkeys(name for name in (*first, *table) if name in table)
    return SavedFilm(Path(to), table[list(columns)])


def check(
    lock: str | Path = "goalreel.lock",
    policy: "str | Mapping | Callable | object | None" = None,
    *,
    log: Callable[[str], object] | None = None,
    **options: object,
) -> "CheckResult":
    """Play the episodes of a lock file again, and compare them.

    Args:
        lock: the file that `snakemake lock` wrote.
        policy: a policy as `film` takes it, None for that of the lock file.
        log: called with each line of the log, such as `print`.
        options: other options, such as check={"mode": "statistical", "tolerance": 5}.

    Returns:
        The result, which is true if the check passed. Its text is the report.

    Raises:
        GoalreelError: the lock file or an option is wrong, or a stage fails.
    """
    from goalreel.verification.check_result import check_run

    given = {**options, "check": {**options.get("check", {}), "file": str(lock)}}
    config, player = _load(locked_options(given), policy)
    with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
        plan = Plan(config | {"results": folder}, _SCRIPTS)
        _make(plan, _PLAYED, player, log, lambda episodes: None)
        ((spec, files),) = plan.jobs("check")
        return check_run(config["check"], spec, files["trajectories"], files["frames"])


def _load(options: Mapping, policy: object) -> tuple[dict, object]:
    """Return a configuration, and the policy object that plays, None for the configuration's."""
    for key in {"max_step_seconds", "max_memory_mb"} & options.keys():
        raise GoalreelError(f"{key}: Limits a job of the workflow. Remove it, or run snakemake.")
    if policy is None or isinstance(policy, str | Mapping):
        return load_config({**options} | ({"policy": policy} if policy else {})), None
    from goalreel.policies.user_function import policy_of

    player = policy_of(policy)
    # It has no options.
    return load_config({**options, "policy": "random"}) | {"policy": {"name": "python"}}, player


@contextlib.contextmanager
def _counting(progress: Callable | None, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of episodes so far and moves a progress bar."""
    bar, done = progress(total=total, unit=unit) if progress else None, 0

    def count(episodes: int) -> None:
        nonlocal done
        if bar is not None and episodes > done:
            bar.update(episodes - done)
            done = episodes

    try:
        yield count
    finally:
        if bar is not None:
            bar.close()


def _make(
    plan: Plan,
    stages: Iterable[str],
    player: object,
    log: Callable[[str], object] | None,
    count: Callable[[int], None],
) -> None:
    """Run stages in order, in an empty results folder."""
    # player: the policy, None for the configuration's; count: takes the number of episodes
    log = log or (lambda line: None)
    for stage in stages:
        for spec, options in plan.jobs(stage):
            if stage in ("play", "simulate") and player is not None:
                options["policy"] = player
            # `play` plays more episodes than the film shows.
            is_film = stage == ("render" if plan.run.has_poses else "simulate")
            first = spec.shard["first"] if is_film else 0
            counted = (lambda n, first=first: count(first + n)) if is_film else (lambda n: None)
            is_drawn = stage in ("atlas", "simulate", "render")
            draws = _DRAWING if is_drawn else contextlib.nullcontext()
            with draws, logging_to(log, counted):
                say(f"{stage}: {program(stage)(spec, **options)}")
            if is_film:
                count(first + spec.shard["count"])


def _options_of(env: "gymnasium.Env") -> dict:
    """Return the options of an environment from gymnasium.make."""
    spec = getattr(env, "spec", None)
    if spec is None:
        raise GoalreelError(f"env: {quoted(str(env))} was not made by gymnasium.make. Pass its id.")
    kwargs = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    made = {"env": spec.id, "env_kwargs": kwargs, "max_episode_steps": spec.max_episode_steps}
    bare = GymnasiumEnvironment(spec.id, kwargs, spec.max_episode_steps).make()
    added = spec.additional_wrappers[len(bare.spec.additional_wrappers) :]  # to those of its id
    for wrapper in added:
        kind = inspect.signature(find_wrapper(wrapper.entry_point))
        has_arguments = len(kind.parameters) > 1 and wrapper.entry_point not in _WITHOUT_ARGUMENTS
        if wrapper.kwargs is None and has_arguments:
            problem = f"The arguments of the wrapper {wrapper.name} are unknown"
            fix = "Inherit from gymnasium.utils.RecordConstructorArgs, or set env_wrappers."
            raise GoalreelError(f"env: {problem}. {fix}")
    wrappers = [{w.entry_point: w.kwargs or {}} for w in added]
    again, given = _names(apply_wrappers(bare, wrappers)), _names(env)
    close_instance(bare)
    if again != given:
        problem = f"It is {quoted(given)}, which goalreel would make as {again}"
        raise GoalreelError(f"env: {problem}. Pass its id, env_wrappers and max_episode_steps.")
    return made | {"env_wrappers": wrappers}


def _names(env) -> str:
    """Return the classes of an environment and its wrappers that affect episodes, as Python."""
    names = [type(layer).__name__ for layer in layers(env)]
    names = [name for name in names if name not in ("PassiveEnvChecker", "OrderEnforcing")]
    return "(".join(names) + ")" * (len(names) - 1)
