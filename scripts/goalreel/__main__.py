"""`goalreel run ...` is `snakemake ...` with this workflow, in any folder."""

import argparse
import os
import sys

import goalreel
from goalreel.cli import WORKFLOW


def main() -> None:
    """Run the command line's words."""
    words = sys.argv[1:]
    if words[:1] == ["run"]:  # all else is Snakemake's, --help too
        snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
        os.execv(sys.executable, [*snakemake, *words[1:]])  # noqa: S606 - of the same user
    parser = argparse.ArgumentParser(
        "goalreel",
        usage="goalreel run [what snakemake takes], such as goalreel run -j 16 --config reaches=20",
        description=goalreel.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=goalreel.__version__)
    parser.parse_known_args(words)
    parser.error(f"unknown command {' '.join(words[:1])!r}. Use run, --version or --help.")


if __name__ == "__main__":
    main()
