"""What the stages' programs share: their command line, their log lines, their way to fail."""

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.spec import Spec, parse_spec


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser whose --help is the program's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def stage_parser(doc: str, stage: str) -> argparse.ArgumentParser:
    """Return a parser for a stage: it takes --spec, checked, beside what the stage adds."""
    program = parser(doc)
    program.add_argument(
        "--spec",
        required=True,
        metavar="JSON",
        help=f"what to make: stage ({stage}), config, and shard, as in the files that exist",
    )
    program.set_defaults(stage=stage)
    return program


def spec_of(arguments: argparse.Namespace) -> Spec:
    """Return the checked spec of a stage's parsed arguments."""
    return parse_spec(arguments.spec, arguments.stage)


def shard_paths(first: Path, count: int) -> list[Path]:
    """Return the files of all shards, given that of shard 0; the others stand beside it.

    A rule cannot name a thousand files in its command: Linux limits an argument to 128 kB.
    """
    return [first.with_name(f"{shard:0{len(first.stem)}d}{first.suffix}") for shard in range(count)]


def say(message: str) -> None:
    """Write a line to the job's log."""
    print(message, file=sys.stderr)


def run(main: Callable[[], None]) -> None:
    """Run a program's main; what a user can cause ends in one message and exit status 1."""
    # A cancelled job ends like an interrupted one: ffmpeg stopped, temporary files removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: terminated (SIGTERM)"))
    try:
        main()
    except GoalreelError as error:
        sys.exit(f"error: {error}")
    except MemoryError as error:
        sys.exit(f"error: out of memory {error}; a smaller shard_size needs less")
    except KeyboardInterrupt:
        sys.exit("error: interrupted (SIGINT)")
    except OSError as error:  # no space, no permission: the text names the file
        sys.exit(f"error: {error}")
