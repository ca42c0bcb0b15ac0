"""A film's subtitle and chapter tracks: one text for each chapter, gathered in columns.

The media of the chapters are before those of the film, all of them; each subtitle is before a byte
of the video's samples, its cut.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.mp4 import box_writer as boxes
from goalreel.mp4.box_writer import Box, box
from goalreel.mp4.columns import Column, Entries
from goalreel.mp4.sample_table_writer import SampleSizes, chunk_places, table

_UTF8 = bytes([0, 0, 0, 12]) + b"encd" + bytes([0, 0, 1, 0])  # QuickTime: this text is UTF-8


@dataclass(frozen=True)
class Chapter:
    """A filmed episode's place in the film."""

    first_frame: int  # of its title card
    frames: int  # its title card's included
    title: str


class Texts:
    """The texts of both tracks, and where they are."""

    def __init__(self, tick: int, folder: Path) -> None:
        """Begin without texts; tick: of the timescale for a frame; folder: for the columns."""
        self._tick = tick
        self._texts, self._lengths = Column(folder, "u1"), SampleSizes(folder)
        self._times = Column(folder, ">u4", 2)
        self._places = Column(folder, "<i8")
        self._lines = Column(folder, "<i8", 2)  # a text's bytes and its cut
        self.bytes = 0
        self.listed: list[tuple[int, str]] = []  # start in ticks and title, of the first of them

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._lengths)

    @property
    def front_bytes(self) -> int:
        """The number of bytes that `front` yields."""
        return self.bytes + len(self) * len(_UTF8)

    def add(self, chapters: Sequence[Chapter], cuts: np.ndarray) -> np.ndarray:
        """Add chapters; return the bytes of all texts before each of them, and before the next.

        cuts: (chapters,) int64, the payload's byte that each one's subtitle is before.
        """
        names = [boxes.utf8(chapter.title, 0xFFFF) for chapter in chapters]
        texts = [len(name).to_bytes(2, "big") + name for name in names]
        before = self.bytes + np.cumsum([0, *map(len, texts)], dtype=np.int64)
        if not texts:
            return before
        self.bytes = int(before[-1])
        lengths = np.diff(before)
        self._texts.append(np.frombuffer(b"".join(texts), np.uint8))
        self._lengths.append(lengths)
        self._places.append(cuts + before[:-1])
        self._lines.append(np.stack([lengths, cuts], axis=1))
        ticks = np.array([chapter.frames * self._tick for chapter in chapters], np.int64)
        self._times.append(np.stack([np.ones_like(ticks), ticks], axis=1))
        for chapter in chapters[: boxes.MOST_CHPL + 1 - len(self.listed)]:
            self.listed.append((chapter.first_frame * self._tick, chapter.title))
        return before

    def front(self) -> Iterator[bytes]:
        """Yield the chapters' samples."""
        return (text + _UTF8 for text, _ in self.lines())

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yield the subtitles' samples, each with its cut, in order."""
        stored, block, place = iter(Entries(self._texts, "u1")), b"", 0
        for length, cut in self._lines.rows():
            while len(block) - place < length:
                block, place = block[place:] + next(stored), 0
            yield block[place : place + length], cut
            place += length

    def subtitles(self, base: int, wide: bool) -> Box:
        """Return stbl of the subtitles; base: the file's byte of the first text."""
        one = table("stsc", np.array([[1, 1, 1]]))
        places = chunk_places(self._places, base, wide)
        return self._samples(boxes.text_entry("tx3g", True), [*one, *places], 0)

    def titles(self, base: int, wide: bool) -> Box:
        """Return stbl of the chapters, whose samples are at `base`."""
        all_ = table("stsc", np.array([[1, len(self), 1]]))
        places = chunk_places(np.array([0]), base, wide)
        return self._samples(boxes.text_entry("text", False), [*all_, *places], len(_UTF8))

    def _samples(self, description: Box, places: Box, more: int) -> Box:
        sizes = self._lengths.box(more)
        return box("stbl", description, table("stts", self._times), places, sizes)
