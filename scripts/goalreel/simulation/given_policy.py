"""The policy that `goalreel.film` was given, in the form in which stages take one: a Python file."""

from collections.abc import Callable

given: Callable | None = None


def make_policy():
    """Return a function of one observation that returns one action."""
    # The stage runs this file as a module of its own, which holds nothing.
    from goalreel.simulation import given_policy

    return lambda observation: given_policy.given(observation)
