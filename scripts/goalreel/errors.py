"""The one exception that a user may see. What it says is complete: no traceback is needed."""


class GoalreelError(Exception):
    """Bad input or a failed tool, told in words that name the culprit and what to do."""
