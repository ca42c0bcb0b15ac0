"""Ctrl-C and SIGTERM as a wish to stop soon, so that a training saves what it has."""

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Takes the two signals while it is entered; in the main thread alone, as Python has it.

    asked: the first one's name, None before; a second one does what it did before
    """

    def __init__(self):
        """Begin with no signal."""
        self.asked: str | None = None
        self._before = {}

    def __enter__(self) -> "Interrupts":
        """Take over."""
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(self, *_) -> None:
        """Give back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.asked = signal.Signals(number).name
        self.__exit__()
