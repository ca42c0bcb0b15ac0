"""The exceptions that a user may see. What they say is complete: no traceback is needed."""

import os
from pathlib import Path


class GoalreelError(Exception):
    """Bad input or a failed tool, told in words that name the culprit and what to do."""


class Unusable(GoalreelError):  # noqa: N818 - the file is, which is said of it
    """A file of the run that is not what goalreel wrote there, or not for this run.

    path: the file; fault: what is wrong with it; others: more such files that were found with it.
    Nothing is lost with them, since the workflow makes them again.
    """

    def __init__(self, path: str | os.PathLike, fault: str) -> None:
        """Name the file and what is wrong with it."""
        super().__init__(f"{path}: cannot be used: {fault}; delete it and run snakemake again")
        self.path = Path(path)
        self.fault = fault
        self.others: tuple[Unusable, ...] = ()
