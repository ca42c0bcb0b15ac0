"""The bar of the whole run, one more in the rich logger's display: frames per second, time left.

Where Snakemake logs otherwise, or not to a terminal, there is none. It has no thread of its own:
the display asks for its words whenever it draws itself.
"""

import time

from goalreel.workflow.job_events import Watch
from goalreel.workflow.progress import Estimate, estimate, told

_NOTHING = Estimate(0.0, None, None)


def show_bar(handlers, watch: Watch) -> None:
    """Add the bar to the display of the rich logger among Snakemake's log handlers, if it is."""
    for handler in handlers:
        display, console = getattr(handler, "progress", None), getattr(handler, "console", None)
        if hasattr(display, "add_task") and getattr(console, "is_terminal", False):
            _Bar(display, watch)


class _Bar:
    """A task of the display that follows a watch."""

    def __init__(self, display, watch: Watch):
        from rich.progress import ProgressColumn
        from rich.table import Column
        from rich.text import Text

        class Told(ProgressColumn):
            """The words of tasks that have some."""

            def render(self, task) -> Text:
                return Text(task.fields["words"]() if "words" in task.fields else "")

        self._watch, self._display = watch, display
        self._found, self._when = _NOTHING, time.monotonic()
        display.columns = (*display.columns, Told(Column(no_wrap=True)))
        self._task = display.add_task("Film", total=1.0, active="", words=self._words)
        watch.listeners.append(self._follow)

    def _follow(self) -> None:
        """Take in that a job has finished."""
        watch, self._when = self._watch, time.monotonic()
        elapsed = self._when - watch.started
        self._found = estimate(watch.planned, watch.done, watch.seconds, watch.frames(), elapsed)
        self._display.update(self._task, completed=self._found.share)

    def _words(self) -> str:
        return told(self._found, time.monotonic() - self._when)
