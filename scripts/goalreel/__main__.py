"""The command `goalreel`: the usual targets of the workflow, in any folder."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import goalreel
from goalreel.cli import WORKFLOW
from goalreel.errors import GoalreelError

_SNAKEMAKE = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]


def main() -> None:
    """Run the command line's words."""
    if sys.argv[1:2] == ["run"]:  # all else is Snakemake's, --help too
        os.execv(sys.executable, [*_SNAKEMAKE, *sys.argv[2:]])  # noqa: S606 - of the same user
    given = _parser().parse_args()
    try:
        sys.exit(given.run(given))
    except GoalreelError as error:
        sys.exit(f"goalreel: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("goalreel", description="Film what a policy does.")
    parser.add_argument("--version", action="version", version=goalreel.__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run, text: str) -> Callable:
        style = argparse.ArgumentDefaultsHelpFormatter
        added = commands.add_parser(name, help=text, description=text, formatter_class=style)
        added.set_defaults(run=run)
        added.add_argument("-j", "--cores", default="all", help="the number of cores")
        return added.add_argument

    option = add("film", _film, "Film episodes. The results stay, so that views can use them.")
    option("env", help="an environment id, such as CartPole-v1")
    option("-p", "--policy", help="a policy's name, or a .py, .zip or .onnx file")
    option("-n", "--episodes", type=int, default=10, help="the number of episodes")
    option("-s", "--seed", type=int, default=2025, help="the root seed")
    option("-o", "--output", default="film.mp4", help="a .mp4, .gif or .webp file")
    text = "another option, such as film.fps=30 (docs/reference/options.md)"
    option("--set", action="append", default=[], metavar="KEY=VALUE", help=text)
    option = add("report", _report, "Make the page of a run.")
    option("results", help="the run's results folder")
    option = add("compare", _compare, "Compare finished runs.")
    option("compare", nargs="+", metavar="results", help="the runs' results folders")
    option("-o", "--output", default="results", help="the folder of compare/")
    option = add("check", _check, "Play the episodes of a lock file again, and compare them.")
    option("lock", nargs="?", default="goalreel.lock", help="the lock file")
    commands.add_parser("run", help="snakemake with this workflow, such as goalreel run -n clips")
    return parser


def _film(given: argparse.Namespace) -> int:
    import yaml

    from goalreel.films.saved_film import check_format, save_film
    from goalreel.workflow.config import load_config
    from goalreel.workflow.suite import with_option

    check_format(given.output)
    options = {name: getattr(given, name) for name in ("env", "policy", "episodes", "seed")}
    for word in given.set:
        key, equals, value = word.partition("=")
        if not equals:
            raise GoalreelError(f"--set {key}: Has no value. Write {key}=VALUE.")
        with contextlib.suppress(yaml.YAMLError):  # else a text, such as a caption
            value = yaml.safe_load(value)
        options = with_option(options, key, value)
    if {"reaches", "seeds"} & options.keys():
        del options["episodes"]
    film = Path(load_config(options)["results"], "film.mp4")
    if not (status := _snakemake(given.cores, **options)):
        save_film(film, given.output)
    return status


def _report(given: argparse.Namespace) -> int:
    options = Path(given.results, "config.yaml")
    if not options.is_file():
        raise GoalreelError(f"{given.results}: Holds no config.yaml. Name the folder of a run.")
    return _snakemake(given.cores, "report", "--configfile", str(options), results=given.results)


def _compare(given: argparse.Namespace) -> int:
    return _snakemake(given.cores, "compare", compare=given.compare, results=given.output)


def _check(given: argparse.Namespace) -> int:
    return _snakemake(given.cores, "check", check={"file": given.lock})


def _snakemake(cores: str, *words: str, **options: object) -> int:
    """Run Snakemake with options of the configuration, and return its exit status."""
    config = [f"{key}={json.dumps(value)}" for key, value in options.items()]
    config = ["--config", *config] if config else []
    with subprocess.Popen([*_SNAKEMAKE, "--cores", cores, *words, *config]) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Snakemake also gets it
        return process.wait()


if __name__ == "__main__":
    main()
