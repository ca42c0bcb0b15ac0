"""A limit on the time that a call of an environment's code may take."""

import contextlib
import faulthandler
import signal
import sys
from collections.abc import Iterator


class TimeLimitError(BaseException):
    """A call took too long. An environment's `except Exception` does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeLimitError after some seconds, or end the process if Python cannot interrupt."""

    def time_out(*_: object) -> None:
        raise TimeLimitError

    signal.signal(signal.SIGALRM, time_out)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + 2, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
