"""PyTorch, which goalreel needs for training and trained policies alone, and does not install."""

import importlib
import sys

from goalreel.errors import GoalreelError


def import_torch(why: str):
    """Return the module. Raises GoalreelError, saying how to get it, where it is missing."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise GoalreelError(
            f"PyTorch is needed {why}, and {sys.executable} cannot import it ({error}): "
            f"pip install 'goalreel[train]'"
        ) from None
