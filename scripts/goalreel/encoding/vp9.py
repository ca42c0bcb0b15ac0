"""VP9 frames whose bytes do not depend on their place, so that a film may show one many times.

An episode is one key frame, the empty track with its caption, which is shown as the title card.
Inter frames follow that refer to this key frame only: they fill no reference slot, and every
entropy context starts from its defaults. So one inter frame per distinct picture of the car serves
all episodes: what it does not change comes from whatever key frame was decoded last, the caption
too. The loop filter is off (level 0), which would smear the caption along the edges of blocks.

How libvpx is run stands in vp9_codec, how headers are rewritten in vp9_header. Who puts the frames
into a file, each stored once, is the writer of MP4.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from goalreel.encoding.vp9_codec import check, decoded, encoded, hashes, luma_errors
from goalreel.encoding.vp9_header import parse_header, rewritten
from goalreel.errors import GoalreelError

# Of libvpx's constant quantisers, 0 to 63. On MountainCar-v0 at 600x400, all 6,704 pictures with
# a caption: luma PSNR 47.5, 51.2 and 57.9 dB on average, 47.4, 51.1 and 57.8 at worst; a picture
# takes 408, 486 and 635 bytes, a key frame with its caption 4.8, 5.7 and 7.2 kB.
QUALITIES = {"small": 28, "balanced": 20, "best": 8}
# libvpx's deadlines and speeds. All frames are made with the first: good at 1 takes three times
# the time for 0.97 of the bytes, realtime at 5 a third of it for 1.6 times them. A picture that
# came to depend on the caption is encoded again with the next, which leans less on neighbours.
_SPEEDS = (("good", 2), ("good", 4), ("realtime", 6), ("realtime", 8))
_EVER = 1 << 30  # frames from one key frame to the next: there is no next
# The box, in a picture of 600x400, in which every caption of overlay stands: its widest are 520
# pixels wide, its letters end above row 30, and a block of 8x8 samples above row 32.
_BOX_HEIGHT, _BOX_WIDTH = 32, 520
# A picture's mean square error, in those of the key frame: 3 dB. Most have 1.1 to 1.2.
_MOST_ERROR = 2


def caption_box(size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the box of an overlay's captions: top, left, height, width, all even.

    size: (width, height) of the picture in pixels, even.
    """
    scale = min(size[0] / 600, size[1] / 400)
    height, width = (2 * round(length * scale / 2) for length in (_BOX_HEIGHT, _BOX_WIDTH))
    return 0, (size[0] - width) // 4 * 2, height, width


def key_frames(pictures: Iterable, size: tuple[int, int], quality: str) -> list[bytes]:
    """Return a key frame of each picture, which stands alone.

    pictures: yuv420p buffers as in yuv, (H * 3 / 2, W) uint8. size: (width, height) in pixels,
    even. quality: one of QUALITIES. Frames of pictures that differ in their captions only decode
    alike below it, but for a few samples where the encoder came to divide the blocks otherwise.
    Raises GoalreelError if ffmpeg fails or has no libvpx.
    """
    frames = _encoded(pictures, size, quality, _SPEEDS[0], 1)
    return [rewritten(frame, filter_level=0) for frame in frames]


def inter_frames(
    background: np.ndarray,
    pictures: Sequence[np.ndarray],
    size: tuple[int, int],
    quality: str,
    caption: tuple[int, int, int, int],
) -> list[bytes]:
    """Return an inter frame of each picture, to be decoded after any of the episodes' key frames.

    background: (H * 3 / 2, W) uint8, the empty track. pictures: likewise, a list or a Yuv420p; they
    differ from the background below the caption only. size, quality: as in key_frames.
    caption: top, left, height and width, even, of the box in which key frames may differ.

    A frame's bytes depend on the pictures before it too, which the encoder's state remembers.
    Raises GoalreelError as key_frames does, and if a picture cannot be encoded so that it neither
    changes anything in the caption's box nor takes anything from it.
    """
    frames: list[bytes] = [b""] * len(pictures)
    key = key_frames([background], size, quality)[0]
    left = list(range(len(pictures)))
    for speed in _SPEEDS:
        if not left:
            break
        coded = _predicted(background, pictures, left, size, quality, caption, speed)
        for number, frame in zip(left, coded, strict=True):
            frames[number] = frame
        bad = _tied(coded, decoded([key], size), size, caption)
        sources = itertools.chain([background], (pictures[number] for number in left))
        bad |= _unlike([key, *coded], sources, size)
        left = [left[place] for place in sorted(bad)]
    if left:
        raise GoalreelError(
            f"libvpx predicts picture {left[0]} (and {len(left) - 1} more) from the caption's box, "
            f"{caption} (top, left, height, width), however it is asked; they stand too close to it"
        )
    return frames


def skip_frame(size: tuple[int, int]) -> bytes:
    """Return an inter frame that shows what the key frame shows: nothing but skipped blocks.

    size: (width, height) in pixels, even. Raises GoalreelError as inter_frames does.
    """
    width, height = size
    # Noise, since in a flat picture every motion vector is as good as none.
    first, second = np.random.default_rng(1).integers(
        16, 236, (2, height * 3 // 2, width), np.uint8
    )
    frame = inter_frames(first, [first], size, "best", (0, 0, 2, 2))[0]
    (key,) = _lossless([second], size)
    shown = hashes([key, frame], size, "null")
    check(shown[0] == shown[1], "a frame that does not repeat its key frame")
    return frame


def _predicted(
    background: np.ndarray,
    pictures: Sequence[np.ndarray],
    which: Sequence[int],
    size: tuple[int, int],
    quality: str,
    caption: tuple[int, int, int, int],
    speed: tuple[str, int],
) -> list[bytes]:
    """Return inter frames of some pictures, predicted from the background alone.

    The encoder is shown background and picture in turns, so that each picture's references hold the
    background; a key frame before every picture would do it in four times the time. The caption's
    box is noise meanwhile, from which it does not pay to predict.
    """
    track = _noisy(background, caption)
    first = _encoded([track], size, quality, speed, 1)
    ground = decoded(first, size)

    def turns() -> Iterator[np.ndarray]:
        for number in which:
            yield track if number == which[0] else ground
            picture = pictures[number]
            if not np.array_equal(_inside(picture, caption), _inside(background, caption)):
                raise GoalreelError(
                    f"picture {number} reaches into the box of the caption, {caption} (top, left, "
                    "height, width)"
                )
            picture = _noisy(picture, caption)
            # What equals the background is given as the decoder has it, so that it is skipped.
            yield np.where(picture != track, picture, ground)

    coded = _encoded(turns(), size, quality, speed, _EVER)
    check(coded[0] == first[0], "a key frame that depends on what follows")
    held = 0  # the reference slots that hold a picture, a bit each
    for place, frame in enumerate(coded):
        header = parse_header(frame)
        if place % 2 == 0:
            held &= ~header.refresh
        else:
            leans = any(held >> slot & 1 for slot in header.references)
            check(not leans, "a picture that refers to another")
            held |= header.refresh
    return [rewritten(frame, refresh=0, filter_level=0) for frame in coded[1::2]]


def _inside(picture: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray:
    """Return the luma of a picture in a box, a view."""
    top, left, height, width = box
    return picture[top : top + height, left : left + width]


def _noisy(
    picture: np.ndarray, box: tuple[int, int, int, int], low: int = 16, high: int = 235
) -> np.ndarray:
    """Return a picture with luma noise from `low` to `high`, always the same, in a box."""
    picture = picture.copy()
    noise = np.random.default_rng(0).integers(low, high + 1, box[2:], np.uint8)
    _inside(picture, box)[:] = noise
    return picture


def _encoded(
    pictures: Iterable, size: tuple[int, int], quality: str, speed: tuple[str, int], interval: int
) -> list[bytes]:
    """Return libvpx's frames of `pictures`, a key frame every `interval`, as they are."""
    if quality not in QUALITIES:
        raise GoalreelError(f"quality: {quality!r}; allowed: {', '.join(QUALITIES)}")
    quantiser = str(QUALITIES[quality])
    options = ["-crf", quantiser, "-qmin", quantiser, "-qmax", quantiser]
    return encoded(pictures, size, options, speed, interval)


def _lossless(pictures: Iterable, size: tuple[int, int]) -> list[bytes]:
    return encoded(pictures, size, ["-lossless", "1"], _SPEEDS[-1], 1)


def _tied(
    frames: Sequence[bytes],
    card: np.ndarray,
    size: tuple[int, int],
    caption: tuple[int, int, int, int],
) -> set[int]:
    """Return which frames change something in the caption's box, or take something from it.

    Each is decoded over two key frames that are as `card` but for noise in the caption's box, dark
    and bright, since a mean of neighbours would tell little of two noises alike.
    """
    top, left, height, width = caption
    cards = [_noisy(card, caption, 16, 100), _noisy(card, caption, 150, 235)]
    keys = _lossless(cards, size)
    shown = [frame for key in keys for frame in (key, *frames)]
    inside = hashes(shown, size, f"crop={width}:{height}:{left}:{top}")
    outside = hashes(shown, size, f"drawbox={left}:{top}:{width}:{height}:black:fill")
    half = len(frames) + 1
    return {
        number - 1
        for number in range(1, half)
        if inside[number] != inside[0]
        or inside[number + half] != inside[half]
        or outside[number] != outside[number + half]
    }


def _unlike(frames: Sequence[bytes], sources: Iterable, size: tuple[int, int]) -> set[int]:
    """Return which inter frames are less like their sources than the key frame, the first, is.

    It happens beside the caption's box, whose noise strays into what they are predicted from.
    """
    errors = luma_errors(frames, sources, size)
    # Never nothing, so that a track of one colour asks for no more than 60 dB.
    most = _MOST_ERROR * max(errors[0], 255**2 / 10**6)
    return {number for number, error in enumerate(errors[1:]) if error > most}
