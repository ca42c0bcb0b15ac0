"""Consolidation: a thread moves steps from all collectors' rings into the replay buffer.

In large batches, since each has a cost of its own, of Python and of the lock that Python's threads
share. Neither the collectors nor the learner wait for it.
"""

import threading
import time
from collections.abc import Sequence

from goalreel.pixels.collector import END
from goalreel.pixels.frame_replay import FrameReplay
from goalreel.pixels.ring import Ring

BATCH = 1000
_WAIT = 0.05  # seconds after which fewer are moved
_PAUSE = 0.002  # seconds between two looks at rings that hold too little


class Consolidation:
    """Moves steps from rings into a replay buffer, in turns of the rings.

    steps: how many it has moved, those rows left out that only end an episode; rows, batches: all
    rows, and in how many batches; limit: of steps, beyond which it moves none until told otherwise
    """

    def __init__(self, rings: Sequence[Ring], replay: FrameReplay, environments: int, batch=BATCH):
        """Take the rings, of so many environments each."""
        self._rings, self._replay, self._environments = list(rings), replay, environments
        self._batch = batch
        self.steps = self.rows = self.batches = 0
        self.limit = float("inf")
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="consolidation", daemon=True)

    def queued(self) -> int:
        """Return the number of rows that wait in the rings."""
        return sum(map(len, self._rings))

    def drain(self) -> int:
        """Move what the rings hold, a batch of each at most; return how many rows that were."""
        moved = 0
        for lane, ring in enumerate(self._rings):
            left = self._batch
            while (most := int(min(left, self.limit - self.steps))) > 0:
                count = self._move(lane, ring, most)
                if not count:
                    break
                moved, left = moved + count, left - count
        return moved

    def _move(self, number: int, ring: Ring, most: int) -> int:
        """Move what stands in one piece in a ring."""
        rows = ring.items(most)
        count = len(rows["env"])
        if count:
            steps = int((rows["action"] != END).sum())
            self._replay.append(rows, number * self._environments)
            ring.release(count)
            self.steps += steps
            self.rows += count
            self.batches += 1
        return count

    def start(self) -> None:
        """Begin to move."""
        self._thread.start()

    def check(self) -> None:
        """Raise what the thread ended by, if it did."""
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """End the thread, and move what is left, up to the limit."""
        self._stopped.set()
        if self._thread.ident:
            self._thread.join()
        while not self._failure and self.drain():
            pass

    def _run(self) -> None:
        try:
            since = time.monotonic()
            while not self._stopped.is_set():
                waiting = self.queued()
                due = waiting >= self._batch or time.monotonic() - since >= _WAIT
                if not (waiting and due and self.drain()):
                    self._stopped.wait(_PAUSE)
                else:
                    since = time.monotonic()
        except BaseException as error:  # the trainer's thread raises it
            self._failure = error
