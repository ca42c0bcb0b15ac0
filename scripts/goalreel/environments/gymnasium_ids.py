"""Look up environment ids in Gymnasium: their class, arguments, packages and source files.

Imported while the Snakefile is parsed. It imports Gymnasium only for environments that goalreel
does not step itself.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import json
import math
import numbers
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from importlib.machinery import PathFinder
from modulefinder import ModuleFinder
from pathlib import Path

from goalreel.environments.registry import FAMILIES, LATE, MAX_SPEED, PACKAGES, describe
from goalreel.errors import GoalreelError, needs_package, not_allowed, suggest, use
from goalreel.provenance.checksums import sha256_of

DEFAULT_FPS = 30  # of a film whose environment has none, as in Gymnasium's RecordVideo
# The older Atari ids, such as PongNoFrameskip-v4 and Pong-v0, which ale_py also registers.
_ATARI = re.compile(r"[A-Z]\w*-v[045]")
_DM_CONTROL = re.compile(r"(?:dm_control/)?([a-z_]+-[a-z_]+)")
# Environments without a time limit whose episodes end only at a goal. ALE, MiniGrid and Blackjack
# also have none in Gymnasium's registry, but end by themselves.
ENDLESS = re.compile(r"(tabular/)?CliffWalking(Slippery)?-v\d+")
_SOURCE, _PACKAGE_FOLDER = 1, 5  # kinds of modules in ModuleFinder
PETTING_ZOO = ("parallel_env", "env")  # the functions of a module that make its environment


def find_spec(env: str):
    """Return Gymnasium's EnvSpec of an id.

    It imports the module that registers the id: ale_py for "ALE/...", minigrid for "MiniGrid-...",
    `module` for "module:Name-v0", which may be in the working directory. It does not import the
    environment's class, which takes 0.1 s or more, because each cluster job parses the Snakefile.
    "module:parallel_env" and "module:env" are functions that make a PettingZoo environment.

    Raises GoalreelError, without a key, if the id is unknown or its module cannot be imported.
    """
    from gymnasium.envs.registration import EnvSpec, registry

    module, _, name = env.rpartition(":")
    _render_without_screen()
    try:
        if module:
            import_module(module)
        if module and name in PETTING_ZOO:
            made = {"module": module, "function": name}
            return EnvSpec(env, "goalreel.environments.pettingzoo_env:PettingZooEnv", kwargs=made)
        for registering in modules_of(name):
            importlib.import_module(registering)
        if name not in registry and importlib.util.find_spec("ale_py"):
            importlib.import_module("ale_py")  # PongNoFrameskip-v4, or Pong-v5 without its ALE/
        if name not in registry:
            raise GoalreelError(f"Unknown id {env!r}. {_fix(module, name, registry)}")
        spec = registry[name]
        if getattr(spec.entry_point, "__name__", "").startswith("_raise_mujoco"):
            newest = _versions(name, registry)[-1]
            raise GoalreelError(f"{env!r} is no longer in Gymnasium. Use env={newest}.")
    except GoalreelError:
        raise
    except Exception as error:  # the user's module, or a library that it lacks
        raise GoalreelError(not_imported(env, error)) from error
    return spec


def modules_of(name: str) -> list[str]:
    """Return the modules that register a family of ids, [] for Gymnasium's own."""
    families = (family for start, family in FAMILIES.items() if name.startswith(start))
    return [family["module"] for family in families if "module" in family]


def is_mujoco(env: str) -> bool:
    """Return whether an id makes one of Gymnasium's own MuJoCo environments, as it is."""
    spec = find_spec(env)
    # Such options may draw more than poses, and wrappers may change the model.
    is_plain = "visual_options" not in spec.kwargs and not spec.additional_wrappers
    return is_plain and str(spec.entry_point).startswith("gymnasium.envs.mujoco.")


def _render_without_screen() -> None:
    """Set the variables that packages of environments read when they are imported."""
    if sys.platform == "linux" and not os.environ.get("MUJOCO_GL"):
        os.environ["MUJOCO_GL"] = "egl"
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("PYGLET_HEADLESS", "true")  # MiniWorld's
    # With "dummy", highway-env renders nothing but black.
    os.environ.setdefault("SDL_VIDEODRIVER", "offscreen" if sys.platform == "linux" else "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def load_creator(env: str) -> Callable:
    """Return what makes an environment. Raises GoalreelError, without a key, if it is unusable."""
    from gymnasium.envs.registration import load_env_creator

    point = find_spec(env).entry_point
    try:
        creator = load_env_creator(point) if isinstance(point, str) else point
    except Exception as error:  # the user's module, or a library that it lacks
        raise GoalreelError(not_imported(env, error)) from error
    metadata = getattr(creator, "metadata", None)
    modes = metadata.get("render_modes") if isinstance(metadata, Mapping) else None
    if modes is not None and "rgb_array" not in modes:
        problem = f"{env!r} has the render modes {', '.join(map(str, modes)) or 'none'}"
        raise GoalreelError(f"{problem}. A film needs 'rgb_array'.")
    return creator


def id_with_module(name: str, entry_point: str) -> str:
    """Return an id with the module that registers it, for an environment's entry point."""
    package = entry_point.partition(":")[0].partition(".")[0]
    known = {family.get("module") for family in FAMILIES.values()} | {"gymnasium"}
    return name if package in known else f"{package}:{name}"


def _fix(module: str, name: str, registry: Mapping) -> str:
    """Return what to type instead of an id that is not registered."""
    versions = _versions(name, registry)
    if not module and "BulletEnv" in name:
        return f"After pip install pybullet_envs_gymnasium, use env=pybullet_envs_gymnasium:{name}."
    if _ATARI.fullmatch(name) and not versions and not importlib.util.find_spec("ale_py"):
        return f"If it is an Atari game, install its package: {_pip('ale_py')}"
    if not module and f"ALE/{name}" in registry:
        return f"Use env=ALE/{name}."
    if not module and versions:
        return f"Use env={versions[-1]}."
    if not module and (task := _DM_CONTROL.fullmatch(name)):
        needs = "" if importlib.util.find_spec("shimmy") else f", after {_pip('shimmy')}"
        return f"If it is a dm_control task, use env=dm_control/{task[1]}-v0{needs}."
    known = [f"{module}:{n}" if module else n for n in registry]
    hint = suggest(f"{module}:{name}" if module else name, known)
    own = "" if module else f" For an id of your module, use env=MODULE:{name}."
    return f"{hint or 'Use an id of Gymnasium.'}{own}"


def _versions(name: str, registry: Mapping) -> list[str]:
    """Return the registered ids that differ from one only in their version, in its order."""
    bare = re.sub(r"-v\d+$", "", name)
    known = (re.fullmatch(re.escape(bare) + r"-v(\d+)", other) for other in registry)
    return [match[0] for match in sorted(filter(None, known), key=lambda match: int(match[1]))]


def _pip(module: str) -> str:
    """Return the command that installs a module's package."""
    return f"pip install {shlex.quote(PACKAGES[module])}"


def not_imported(env: str, error: Exception) -> str:
    """Return the message about an environment or a wrapper that cannot be imported."""
    missing = getattr(error.__cause__ or error, "name", None)  # Gymnasium's error has no name
    if missing in PACKAGES:
        return needs_package(repr(env), PACKAGES[missing])
    module, _, name = env.rpartition(":")
    if module.endswith(".py"):
        return f"{env!r} names a file. Use {module.removesuffix('.py')}:{name}."
    if missing and f"{module}.".startswith(f"{missing}."):
        return (
            f"No module {missing!r} for {env!r}. Install it, or run snakemake in the folder of "
            f"its file.\n  Searched: {Path.cwd()} and the packages of {sys.executable}"
        )
    if "MUJOCO_GL" in str(error):
        problem = f"MuJoCo cannot render with MUJOCO_GL={os.environ.get('MUJOCO_GL')!r}"
        return f"{problem}. Use egl, osmesa, or glfw with a display."
    cause = f"{type(error).__name__}: {error}".replace("\n", "\n  ")
    return f"{env!r} cannot be imported. Correct its module.\n  {cause}"


def environment_errors(env: str, kwargs: Mapping) -> list[tuple[str, str]]:
    """Return (key, message) for the errors of `env` and `env_kwargs`, without the class."""
    is_car, speed = describe(env).computed, kwargs.get("goal_velocity", 0.0)
    try:
        if not is_car:
            find_spec(env)
    except GoalreelError as error:
        return [("env", str(error))]
    errors = argument_errors("env_kwargs", env, _take_goal if is_car else None, kwargs)
    if is_car and not (type(speed) in (int, float) and abs(speed) <= MAX_SPEED):
        allowed = [f"a number from -{MAX_SPEED} to {MAX_SPEED}"]
        errors.append(("env_kwargs.goal_velocity", not_allowed(speed, allowed)))
    return errors


def creator_errors(env: str, kwargs: Mapping) -> list[tuple[str, str]]:
    """Return (key, message) for the errors that the class of `env` shows."""
    try:
        creator = _take_goal if describe(env).computed else load_creator(env)
    except GoalreelError as error:
        return [("env", str(error))]
    return argument_errors("env_kwargs", env, creator, kwargs)


def _take_goal(goal_velocity: float) -> None:
    """Have the signature of goalreel's Mountain Cars."""


def argument_errors(
    key: str, name: str, maker: Callable | None, kwargs: Mapping, positional: int = 0
) -> list[tuple[str, str]]:
    """Return (key.argument, message) for wrong arguments of an environment or a wrapper.

    Without a `maker`, its class or function, it checks only the values. The first `positional`
    parameters are not in `kwargs`.
    """
    errors = {argument: _value_error(argument, value) for argument, value in kwargs.items()}
    if maker is not None and not any(errors.values()):
        with contextlib.suppress(TypeError, ValueError):  # some makers have no signature
            parameters = [*inspect.signature(maker).parameters.values()][positional:]
            known = [p.name for p in parameters if p.name not in ("self", "render_mode")]
            fix = use(known, page=f"the documentation of {name}")
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                for other in kwargs.keys() - set(known):
                    errors[other] = f"Unknown argument of {name}. {suggest(other, known) or fix}"
    return [(f"{key}.{argument}", error) for argument, error in errors.items() if error]


def environment_fps(env: str, kwargs: Mapping) -> float:
    """Return the frames per second of an environment, 30 if it has none."""
    # MuJoCo environments have theirs only in instances.
    if fps := _fps_of(load_creator(env)):
        return fps
    with contextlib.suppress(Exception):  # the simulation reports errors of the constructor
        instance = make_quietly(env, kwargs)
        instance.close()
        return _fps_of(instance) or DEFAULT_FPS
    return DEFAULT_FPS


def make_quietly(env: str, kwargs: Mapping):
    """Return an instance to inspect, which takes milliseconds (0.2 s for ALE) without rendering."""
    import gymnasium

    spec = find_spec(env)
    if mujoco := sys.modules.get("mujoco"):
        # MuJoCo warns about its own models on the terminal and in a log file.
        mujoco.set_mju_user_warning(lambda message: None)
    if games := sys.modules.get("ale_py"):  # it prints its name
        games.ALEInterface.setLoggerMode(games.LoggerMode.Error)
    return gymnasium.make(spec, render_mode="rgb_array", **make_arguments(kwargs))


def make_arguments(kwargs: Mapping) -> dict:
    """Return arguments of `gymnasium.make`, with ALE's `frameskip` as a tuple, which YAML lacks."""
    skip = kwargs.get("frameskip")
    pair = {"frameskip": tuple(skip)} if isinstance(skip, list) else {}
    return {"disable_env_checker": True, **kwargs, **pair}


def _fps_of(maker: object) -> float | None:
    fps = (getattr(maker, "metadata", None) or {}).get("render_fps")
    is_number = isinstance(fps, numbers.Real) and math.isfinite(fps) and fps > 0
    return float(fps) if is_number else None


def environment_tools(env: str, wrappers: Collection[str] = ()) -> tuple[str, ...]:
    """Return the packages, except Gymnasium, whose versions affect an environment."""
    imported = _modules(env, wrappers)
    modules = {module.split(".")[0] for module in imported}
    for start, late in LATE.items():
        modules |= set(late) if any(module.startswith(start) for module in imported) else set()
    return tuple(sorted({*filter(None, map(_package, modules))} - {"gymnasium", "goalreel"}))


def _package(module: str) -> str | None:
    """Return the installed package of a module, None if there is none."""
    # The search through all packages takes 0.4 s, so known names come first.
    if module in sys.stdlib_module_names or module in ("goalreel", "__main__"):
        return None
    for named in (module, PACKAGES.get(module, module)):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.distribution(named).name
    found = importlib.util.find_spec(module)
    if found is None or not _is_installed(found.origin or ""):
        return None
    return next(iter(importlib.metadata.packages_distributions().get(module, ())), None)


def _is_installed(path: str) -> bool:
    """Return whether a module's file belongs to an installed package."""
    # Also in a virtual environment beneath this one, or in the system's packages.
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(path).parts)


def environment_files(env: str, wrappers: Collection[str] = ()) -> dict[str, str]:
    """Return the sha256 of the user's files that register or define an environment, by name.

    A module comes with those in its folder that it imports, directly or indirectly.
    """
    # Modules of installed packages are skipped, because their version is known.
    if describe(env).computed:
        return {}
    digests = {}
    for name in sorted(_modules(env, wrappers)):
        digests |= module_files(name)
    return digests


def module_files(name: str) -> dict[str, str]:
    """Return the sha256 of a user's module and of those that it imports, {} if it is installed."""
    path = _file_of(name)
    if not path or _is_installed(path):
        return {}
    # The folder of the top package, or of a module without one.
    root = Path(path).parents[name.count(".") + path.endswith("__init__.py")]
    files = with_imports(Path(path), root, name)
    return {file.relative_to(root).as_posix(): sha256_of(file) for file in files}


def with_imports(path: Path, root: Path | None = None, module: str = "") -> list[Path]:
    """Return a Python file and those below `root` that it imports, directly or indirectly.

    root: the file's folder if None
    module: the file's full name, if it is one of a package
    """
    finder = _ImportFinder([str(root or path.parent)])
    # The job reports these errors, with a traceback.
    with contextlib.suppress(ImportError, SyntaxError, RecursionError, MemoryError):
        finder.import_hook(module) if module else finder.run_script(str(path))  # only read it
    modules = finder.modules.values()
    files = {Path(found.__file__) for found in modules if found.__file__}
    return sorted({path, *filter(Path.is_file, files)})


class _ImportFinder(ModuleFinder):
    """A finder that also follows folders without `__init__.py`."""

    def find_module(self, name: str, path: list[str] | None, parent: object = None) -> tuple:
        """Return a file or None, a path, and the kind of the module, as the standard library."""
        try:
            return super().find_module(name, path, parent)
        except AttributeError:  # of a folder without it
            (folder, *_) = PathFinder.find_spec(name, path or self.path).submodule_search_locations
            return None, folder, ("", "", _PACKAGE_FOLDER)
        except ImportError:
            if name != "__init__":
                raise
            return io.BytesIO(), path[0], ("", "rb", _SOURCE)


def _file_of(module: str) -> str | None:
    """Return the file of a module, imported or not, None if it is not a Python file."""
    if module in sys.modules:
        return getattr(sys.modules[module], "__file__", None)
    top, *names = module.split(".")
    found = PathFinder.find_spec(top, [*sys.path, str(Path.cwd())])
    if found is None or not names:
        return found and found.origin
    paths = [Path(folder, *names) for folder in found.submodule_search_locations or ()]
    files = [file for path in paths for file in (path / "__init__.py", path.with_suffix(".py"))]
    return next((str(file) for file in files if file.is_file()), None)


def _modules(env: str, wrappers: Collection[str]) -> set[str]:
    """Return the modules that register and define an environment, and those of its wrappers."""
    point = find_spec(env).entry_point
    defining = point.partition(":")[0] if isinstance(point, str) else point.__module__
    # Only the version of a package matters. For the user's own module, the class names the file.
    if _package(defining.partition(".")[0]) is None:
        with contextlib.suppress(GoalreelError):  # the check of `env` reports it
            defining = load_creator(env).__module__
    return {env.rpartition(":")[0], defining, *wrappers} - {""}


def import_module(module: str):
    """Import and return a module, which may be in the working directory."""
    here = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if here not in sys.path:
        sys.path.append(here)  # at the end, so that it hides no other module
    return importlib.import_module(module)


def _value_error(key: object, value: object) -> str:
    """Return the message about an argument that cannot be stored as JSON, "" if it can."""
    if not isinstance(key, str) or not key.isidentifier():
        return "Not the name of an argument. Remove it."
    if key in ("render_mode", "max_episode_steps", "id", "disable_env_checker"):
        return "Set by goalreel. Remove it, or set a time limit with the option max_episode_steps."
    with contextlib.suppress(TypeError, ValueError):
        if json.loads(json.dumps(value, allow_nan=False)) == value:
            return ""
    return not_allowed(value, ["a number", "text", "true or false", "null", "a list of these"])
