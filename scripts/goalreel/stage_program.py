"""The decorator that makes a function the program of a stage, with a command line.

@stage
def grid(spec, frames: Shards, trajectories: Shards, output): ...
"""

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from goalreel import cli
from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.provenance.fingerprint import fingerprint, sources_as_noted
from goalreel.provenance.spec import Spec, package_version, parse_spec, shard_paths

# The files of all shards. A command line names the first.
Shards = Sequence[Path]


def stage(function: Callable) -> Callable:
    """Make a function the program of the stage of its name, and run it if its file is the script.

    The program checks the spec and the inputs, calls the function, and writes the line that the
    function returns to the log. A function takes the spec, then a parameter for each option: a
    path, a number (`int`), or the files of all shards (`Shards`). A parameter without a default is
    a required option. A function imports its own modules, so that --help is fast.
    """

    def main(argv: Sequence[str] | None = None) -> None:
        arguments = vars(_parser(function).parse_args(argv))
        spec = check_spec(arguments.pop("spec"), function.__name__)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.annotation is Shards and arguments[name]:
                arguments[name] = shard_paths(arguments[name], spec.shard["shards"])
        if spec.input_digests:
            from goalreel.provenance.embedded_specs import check_inputs

            check_inputs(spec, arguments)
        cli.say(function(spec, **arguments))

    function.main = main
    if function.__module__ == "__main__":
        cli.run(main)
    return function


def _parser(function: Callable) -> argparse.ArgumentParser:
    program = cli.parser(f"{function.__globals__['__doc__']}\nSnakemake runs this program.")
    program.add_argument(
        "--spec", required=True, metavar="JSON", help="spec of the result: stage, config, shard"
    )
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        program.add_argument(
            f"--{name.replace('_', '-')}",
            type=int if parameter.annotation is int else Path,
            # Snakemake writes --NAME without a value if the run does not have the file.
            nargs="?" if parameter.default is None else None,
            required=parameter.default is parameter.empty,
            default=parameter.default,
            metavar="N" if parameter.annotation is int else "PATH",
            help="the file of shard 0" if parameter.annotation is Shards else None,
        )
    return program


def check_spec(text: str, stage: str) -> Spec:
    """Return a stage's spec from its JSON.

    Raises GoalreelError if it is not a spec of the stage, or if the tools or the code changed after
    the workflow planned it.
    """
    spec = parse_spec(text)
    if spec.stage != stage:
        raise GoalreelError(f"--spec: Is for the stage {spec.stage!r}, not {stage!r}.")
    for name, planned in spec.tools.items():
        installed = ffmpeg.version() if name == "ffmpeg" else package_version(name)
        if planned != installed:
            raise GoalreelError(
                f"{name}: Planned with version {planned}, but {sys.executable} has {installed}. "
                f"Give the workflow and its jobs the same environment."
            )
    script = cli.WORKFLOW / "scripts" / f"{stage}.py"
    if spec.code and not sources_as_noted(script.parent):
        try:
            code = fingerprint(script, spec.excluded_modules)
        except GoalreelError:  # it is being edited right now
            code = None
        if spec.code != code:
            raise GoalreelError(f"{script}: The code changed after the run started.")
    return spec
