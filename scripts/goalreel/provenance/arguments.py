"""The command line of a stage's program: --spec beside what the stage adds."""

import argparse

from goalreel import cli
from goalreel.errors import GoalreelError
from goalreel.provenance.fingerprint import fingerprint, sources_as_noted
from goalreel.provenance.spec import Spec, package_version, parse_spec


def stage_parser(doc: str, stage: str) -> argparse.ArgumentParser:
    """Return a parser for a stage, whose --help is `doc`."""
    program = cli.parser(doc)
    program.add_argument(
        "--spec",
        required=True,
        metavar="JSON",
        help=f"what to make, as JSON: stage ({stage}), config and shard",
    )
    program.set_defaults(stage=stage)
    return program


def spec_of(arguments: argparse.Namespace) -> Spec:
    """Return the spec of a stage's parsed arguments. Call it once all is imported.

    Raises:
        GoalreelError: it is no spec of the stage, or the code is no longer what the workflow
            planned with: a result must not carry the fingerprint of other code than made it.
    """
    spec = parse_spec(arguments.spec)
    if spec.stage != arguments.stage:
        raise GoalreelError(f"--spec is for the stage {spec.stage!r}, not {arguments.stage!r}")
    for name in spec.tools:
        if name != "ffmpeg":  # which is no Python package: the stages that use it check it
            spec.check_tool(name, package_version(name))
    script = cli.WORKFLOW / "scripts" / f"{arguments.stage}.py"
    if spec.code and not sources_as_noted(script.parent):
        try:
            code = fingerprint(script, spec.without)
        except GoalreelError:  # it is being edited right now
            code = None
        if spec.code != code:
            raise GoalreelError(
                f"the code of {script} has changed since the run started; start it again"
            )
    return spec
