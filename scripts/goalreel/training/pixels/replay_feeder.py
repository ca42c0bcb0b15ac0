"""The replay feeder: a thread that moves steps from all collectors' rings into the replay buffer.

It moves large batches, since each has a cost of its own, of Python and of the lock that Python's
threads share. Neither the collectors nor the learner wait for it.
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


class ReplayFeeder:
    """Moves steps from rings into a replay buffer, a batch of all rings at a time.

    Attributes:
        steps: how many it has moved, without those rows that only end an episode.
        rows: all rows that it has moved.
        batches: in how many batches.
        limit: of steps, beyond which it moves none until that is raised.
    """

    def __init__(self, rings: Sequence[Ring], replay: FrameReplay, environments: int):
        """Take the rings, of so many environments each."""
        self._rings, self._replay, self._environments = list(rings), replay, environments
        self._first = 0  # the ring that the next batch begins with
        self.steps = self.rows = self.batches = 0
        self.limit = float("inf")
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay feeder", daemon=True)

    def queued(self) -> int:
        """Return the number of rows that wait in the rings."""
        return sum(map(len, self._rings))

    def drain(self) -> int:
        """Move what the rings hold, a batch for each at most; return how many rows that were.

        Up to the limit, an equal share of which falls to each ring that holds as much: each time
        another ring is the first, which has what is left over.
        """
        moved, until, rings = 0, self.steps + self._room(), len(self._rings)
        while True:
            before = moved
            for turn in range(rings):
                share = math.ceil((until - self.steps) / (rings - turn))
                moved += self._move_all((self._first + turn) % rings, share)
            if moved == before:
                break
        if moved:
            self._first = (self._first + 1) % rings
            self.batches += 1
        return moved

    def _room(self) -> int:
        """Return the steps up to the limit, or as many as a batch of all rings has at most."""
        return max(int(min(self.limit - self.steps, BATCH * len(self._rings))), 0)

    def _move_all(self, number: int, most: int) -> int:
        """Move up to `most` rows of a ring, also around its end; return how many that were."""
        moved, ring = 0, self._rings[number]
        while moved < most:
            rows = ring.items(most - moved)  # in one piece
            count = len(rows["env"])
            if not count:
                break
            steps = int((rows["action"] != END).sum())
            self._replay.append(rows, number * self._environments)
            ring.release(count)
            self.steps += steps
            self.rows += count
            moved += count
        return moved

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
                enough = waiting >= min(BATCH, room)
                if since is not None and (enough or time.monotonic() - since >= _WAIT):
                    self.drain()
                    since = None
                else:
                    self._stopped.wait(_PAUSE)
        except BaseException as error:  # the trainer's thread raises it
            self._failure = error
