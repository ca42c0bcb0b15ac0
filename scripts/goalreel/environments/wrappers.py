"""Find, check and apply the wrappers of `env_wrappers`. The Snakefile imports it."""

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from goalreel.environments import gymnasium_ids as ids
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, OptionError, not_allowed, suggest

_FORMS = ("module:callable", "{module:callable: {argument: value}}")
_SB3, _ATARI = "stable_baselines3", "stable_baselines3.common.atari_wrappers"
_COMPUTED = "Not supported for {0}, which goalreel steps itself. Use env=gymnasium:{0}."


def named(wrapper: str | Mapping) -> tuple[str, Mapping]:
    """Return the name "module:callable" of an item of `env_wrappers`, and its arguments."""
    if isinstance(wrapper, str):
        return wrapper, {}
    ((name, kwargs),) = wrapper.items()
    return name, kwargs or {}


def find_wrapper(name: str) -> Callable:
    """Return "module:callable", also of the working directory. Raises GoalreelError without it."""
    module_name, _, attribute = name.partition(":")
    try:
        if module_name == _ATARI and _SB3 not in sys.modules:
            _load_atari_wrappers()
        module = ids.import_module(module_name)
        wrapper = getattr(module, attribute, None)
    except Exception as error:  # the user's module, or a library that it lacks
        raise GoalreelError(ids.not_imported(name, error)) from error
    if not callable(wrapper):
        known = [n for n, value in vars(module).items() if n[0] != "_" and callable(value)]
        fix = suggest(attribute, known) or "Correct its name."
        raise GoalreelError(f"No callable {attribute!r} in {module_name}. {fix}")
    return wrapper


@cache
def _load_atari_wrappers() -> None:
    """Load Stable-Baselines3's wrappers for Atari without its package, unless they need it.

    The package starts PyTorch, which takes 2.5 s in each job. The wrappers need two types of it.
    """
    types = ModuleType(f"{_SB3}.common.type_aliases")
    types.AtariResetReturn = types.AtariStepReturn = tuple
    stubs = ModuleType(_SB3), ModuleType(f"{_SB3}.common"), types
    package = importlib.util.find_spec(_SB3)
    sys.modules.update({stub.__name__: stub for stub in stubs})
    with contextlib.suppress(Exception):  # it is not installed, or of a version that needs more
        path = Path(package.origin).with_name("common") / "atari_wrappers.py"
        spec = importlib.util.spec_from_file_location(_ATARI, path)
        spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
        sys.modules[_ATARI] = module  # so that a later import gives the same classes
    for stub in stubs:
        del sys.modules[stub.__name__]


def wrapper_modules(wrappers: Sequence[str | Mapping]) -> list[str]:
    """Return the modules that name and define wrappers."""
    names = [named(wrapper)[0] for wrapper in wrappers]
    defining = {getattr(find_wrapper(name), "__module__", None) for name in names}
    return sorted({name.partition(":")[0] for name in names} | (defining - {None}))


def apply_wrappers(env, wrappers: Sequence[str | Mapping]):
    """Return an environment in its wrappers, the first innermost. Raises OptionError."""
    for wrapper in wrappers:
        name, kwargs = named(wrapper)
        try:
            env = find_wrapper(name)(env, **{key: _tuples(v) for key, v in kwargs.items()})
        except Exception as error:  # whatever its constructor raises
            kind = type(error).__name__
            what = "Install what it needs" if "NotInstalled" in kind else "Correct its arguments"
            cause = f"{kind}: {error}".replace("\n", "\n  ")
            problem = f"{name!r} cannot be made. {what}.\n  {cause}"
            raise OptionError("env_wrappers", problem) from error
        if not all(callable(getattr(env, method, None)) for method in ("reset", "step", "render")):
            problem = f"{name!r} does not return an environment"
            raise OptionError("env_wrappers", f"{problem}. Return a gymnasium.Wrapper.")
    return env


def _tuples(value: object) -> object:
    """Return a value with tuples instead of lists, because YAML has no tuples for shapes."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def sticky_options(config: Mapping) -> dict[str, object]:
    """Return the options that `sticky_actions` stands for, {} if it is None.

    ALE and Super Mario Bros repeat an action in each frame. A wrapper does it in each step of the
    others. Raises OptionError if goalreel steps the environment itself, or both options are set.
    """
    key, env, probability = "sticky_actions", config["env"], config["sticky_actions"]
    if probability is None:
        return {}
    if describe(env).computed:
        raise OptionError(key, _COMPUTED.format(env))
    repeat = {"repeat_action_probability": probability}
    is_console = env.rpartition(":")[2].startswith(("ALE/", "SuperMarioBros-"))
    with contextlib.suppress(GoalreelError):  # of an unknown id, which is reported later
        is_console = is_console or repeat.keys() <= ids.find_spec(env).kwargs.keys()  # Pong-v0
    if not is_console:
        wrapper = {"gymnasium.wrappers:StickyAction": repeat}
        if any("gymnasium.wrappers:StickyAction" in one for one in config["env_wrappers"]):
            raise OptionError(key, "Also set by StickyAction in env_wrappers. Remove one.")
        if probability == 1:
            raise OptionError(key, f"'1' is not allowed for {env}. Use a number below 1.")
        return {key: None, "env_wrappers": [*config["env_wrappers"], wrapper]}
    if repeat.keys() & config["env_kwargs"]:
        raise OptionError(key, "Also set by env_kwargs.repeat_action_probability. Remove one.")
    return {key: None, "env_kwargs": config["env_kwargs"] | repeat}


def spaces_of(config: Mapping) -> dict[str, object]:
    """Return the spaces in wrappers, {} if unknown. Raises GoalreelError for a wrong wrapper."""
    try:
        wrapped = ids.make_quietly(config["env"], config["env_kwargs"])
        wrapped = apply_wrappers(wrapped, config["env_wrappers"])
        wrapped.close()
        return {name: getattr(wrapped, name) for name in ("observation_space", "action_space")}
    except Exception as error:  # a job reports errors of OpenGL
        rejected = TypeError | ValueError | AssertionError
        if isinstance(error, GoalreelError) and isinstance(error.__cause__, rejected):
            raise
        return {}


def wrapper_errors(env: str, wrappers: Sequence[str | Mapping]) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for each error of `env_wrappers`, given that `env` has none."""
    if wrappers and describe(env).computed:
        yield "env_wrappers", _COMPUTED.format(env)
        return
    for place, wrapper in enumerate(wrappers):
        key = f"env_wrappers.{place}"
        name, kwargs = named(wrapper) if isinstance(wrapper, str) or len(wrapper) == 1 else ("", {})
        if not isinstance(kwargs, Mapping) or str(name).count(":") != 1:
            yield key, not_allowed(wrapper, _FORMS)
            continue
        try:
            found = find_wrapper(name)
        except GoalreelError as error:
            yield key, str(error)
            continue
        for late in ids.LATE.get(getattr(found, "__module__", ""), ()):
            if importlib.util.find_spec(late) is None:
                yield key, ids.not_imported(name, ModuleNotFoundError(name=late))
        yield from ids.argument_errors(key, name, found, kwargs, positional=1)
