"""Consolidation: a thread moves steps from all collectors' rings into the replay buffer.

In large batches, since each has a cost of its own, of Python and of the lock that Python's threads
share. Neither the collectors nor the learner wait for it.
"""

import math
import threading
import time
from collections.abc import Sequence

from goalreel.training.pixels.collector import END
from goalreel.training.pixels.frame_replay_buffer import FrameReplay
from goalreel.training.pixels.settings import BATCH
from goalreel.training.shared_memory.ring import Ring

_WAIT = 0.2  # seconds after which fewer are moved
_PAUSE = 0.002  # seconds between two looks at rings that hold too little


class Consolidation:
    """Moves steps from rings into a replay buffer, a batch of all rings at a time.

    steps: how many it has moved, those rows left out that only end an episode; rows, batches: all
    rows, and in how many batches; limit: of steps, beyond which it moves none until told otherwise
    """

    def __init__(self, rings: Sequence[Ring], replay: FrameReplay, environments: int, batch=BATCH):
        """Take the rings, of so many environments each."""
        self._rings, self._replay, self._environments = list(rings), replay, environments
        self._batch = batch
        self._first = 0  # the ring that the next batch begins with
        self.steps = self.rows = self.batches = 0
        self.limit = float("inf")
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="consolidation", daemon=True)

    def queued(self) -> int:
        """Return the number of rows that wait in the rings."""
        return sum(map(len, self._rings))

    def drain(self) -> int:
        """Move what the rings hold, `batch` rows for each at most; return how many that were.

        Up to the limit, an equal share of which falls to each ring that holds as much: each time
        another ring is the first, which has what is left over.
        """
        moved, until = 0, self.steps + self._room()
        while count := self._round(until):
            moved += count
        if moved:
            self._first = (self._first + 1) % len(self._rings)
            self.batches += 1
        return moved

    def _round(self, until: int) -> int:
        """Move rows of each ring once, up to so many steps in all."""
        moved, rings = 0, len(self._rings)
        for turn in range(rings):
            share = math.ceil((until - self.steps) / (rings - turn))
            moved += self._move_all((self._first + turn) % rings, share)
        return moved

    def _room(self) -> int:
        """Return the steps up to the limit, or as many as a batch of all rings has at most."""
        return max(int(min(self.limit - self.steps, self._batch * len(self._rings))), 0)

    def _move_all(self, number: int, most: int) -> int:
        """Move up to `most` rows of a ring, also around its end."""
        moved, ring = 0, self._rings[number]
        while moved < most and (count := self._move(number, ring, most - moved)):
            moved += count
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
            since = None  # when there began to be something to move
            while not self._stopped.is_set():
                waiting, room = self.queued(), self._room()
                if not (waiting and room):
                    since = None
                elif since is None:
                    since = time.monotonic()
                # Where the rings hold all that there is room for, waiting brings no more.
                enough = waiting >= min(self._batch, room)
                if since is not None and (enough or time.monotonic() - since >= _WAIT):
                    self.drain()
                    since = None
                else:
                    self._stopped.wait(_PAUSE)
        except BaseException as error:  # the trainer's thread raises it
            self._failure = error
