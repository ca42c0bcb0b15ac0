"""NumPy's SeedSequence and PCG64 for many episodes at once, bit for bit, on uint64 arrays.

`np.random.default_rng(seed)` takes about 30 µs. Here a thousand generators take as long. Sources:
numpy/random/bit_generator.pyx (SeedSequence, after M. E. O'Neill's seed_seq_fe) and
numpy/random/src/pcg64 (PCG XSL RR 128/64).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Hash constants of SeedSequence, all uint32.
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
_POOL = 4
_WORD = 0xFFFFFFFF

# The 128-bit multiplier of PCG64, as high and low halves.
_PCG_HIGH, _PCG_LOW = np.uint64(0x2360ED051FC65DA4), np.uint64(0x4385DF649FCCF645)
_U64 = np.uint64

SEED_BITS = 53  # seeds fit float64, so CSV readers and JavaScript keep them exact
_ACTION_STREAM = 1


def episode_seeds(root_seed: int, reaches: np.ndarray, attempt: int) -> np.ndarray:
    """Return the seeds of one attempt, from 0, at each of `reaches`, which are below 2**32.

    They are int64 in [0, 2**53): the top 53 bits of
    `SeedSequence(root_seed, spawn_key=(reach, attempt)).generate_state(1, np.uint64)`.
    """
    count = len(reaches)
    words = [root_seed & _WORD, root_seed >> 32, 0, 0]  # padded, as before any spawn key
    entropy = [np.full(count, word, np.uint32) for word in words]
    entropy += [np.asarray(reaches, np.uint32), np.full(count, attempt, np.uint32)]
    state = _generate_state(_pool(entropy), 1)
    return (state[0] >> _U64(64 - SEED_BITS)).astype(np.int64)


class Pcg64(NamedTuple):
    """Immutable PCG64 generators: their 128-bit states and increments, in (n,) uint64 halves."""

    state_high: np.ndarray
    state_low: np.ndarray
    inc_high: np.ndarray
    inc_low: np.ndarray

    def random(self) -> tuple["Pcg64", np.ndarray]:
        """Return the advanced generators and one float in [0, 1) from each, like `rng.random()`."""
        high, low = _advance(self.state_high, self.state_low, self.inc_high, self.inc_low)
        rotation = high >> _U64(58)
        folded = high ^ low
        word = (folded >> rotation) | (folded << ((_U64(64) - rotation) & _U64(63)))
        doubles = (word >> _U64(11)).astype(np.float64) * (1.0 / 9007199254740992.0)
        return Pcg64(high, low, self.inc_high, self.inc_low), doubles

    def take(self, mask: np.ndarray) -> "Pcg64":
        """Return the generators that a boolean mask or indices select."""
        return Pcg64(*(part[mask] for part in self))


def uniform(seeds: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return `np.random.default_rng(seed).uniform(low, high)` of each seed: (numbers, seeds)."""
    # low, high: (numbers,) float64
    generators, rows = _generators(_seed_words(seeds)), []
    for first, end in zip(low, high, strict=True):
        generators, doubles = generators.random()
        rows.append(first + (end - first) * doubles)
    return np.stack(rows)


def _numpys_uniform(seeds: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    rngs = map(np.random.default_rng, np.asarray(seeds).tolist())
    return np.array([rng.uniform(low, high) for rng in rngs]).reshape(len(seeds), len(low)).T


def action_generators(seeds: np.ndarray) -> Pcg64:
    """Return the generator of random actions for each episode.

    It is `np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))))`,
    which is independent of the environment's generator.
    """
    zero = np.zeros(len(seeds), np.uint32)
    stream = np.full(len(seeds), _ACTION_STREAM, np.uint32)
    return _generators([*_seed_words(seeds), zero, zero, stream])


def _seed_words(seeds: np.ndarray) -> list[np.ndarray]:
    seeds = np.asarray(seeds).astype(np.uint64)
    return [(seeds & _U64(_WORD)).astype(np.uint32), (seeds >> _U64(32)).astype(np.uint32)]


def _generators(entropy: list[np.ndarray]) -> Pcg64:
    state_high, state_low, stream_high, stream_low = _generate_state(_pool(entropy), 4)
    inc_high = (stream_high << _U64(1)) | (stream_low >> _U64(63))
    inc_low = (stream_low << _U64(1)) | _U64(1)
    # pcg_setseq_128_srandom_r: a step from zero gives the increment; add the seed; step again.
    low = inc_low + state_low
    high = inc_high + state_high + (low < inc_low)
    high, low = _advance(high, low, inc_high, inc_low)
    return Pcg64(high, low, inc_high, inc_low)


def _hasher(constant: int, multiplier: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return SeedSequence's uint32 hash function, whose constant changes with each call."""

    def hashed(value: np.ndarray) -> np.ndarray:
        nonlocal constant
        value = value ^ np.uint32(constant)
        constant = constant * multiplier & _WORD
        value = value * np.uint32(constant)
        return value ^ (value >> _SHIFT)

    return hashed


def _pool(entropy: list[np.ndarray]) -> list[np.ndarray]:
    """Hash words of (n,) uint32 into a pool of four, like SeedSequence.mix_entropy."""
    hashed = _hasher(_INIT_A, _MULT_A)
    zero = np.zeros_like(entropy[0])
    padded = entropy + [zero] * (_POOL - len(entropy))
    pool = [hashed(word) for word in padded[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = _mix(pool[target], hashed(pool[source]))
    for word in padded[_POOL:]:
        for target in range(_POOL):
            pool[target] = _mix(pool[target], hashed(word))
    return pool


def _mix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    mixed = x * _MIX_L - y * _MIX_R
    return mixed ^ (mixed >> _SHIFT)


def _generate_state(pool: list[np.ndarray], count: int) -> list[np.ndarray]:
    """Return `count` arrays of (n,) uint64, like SeedSequence.generate_state."""
    hashed = _hasher(_INIT_B, _MULT_B)
    words = [hashed(pool[i % _POOL]).astype(np.uint64) for i in range(2 * count)]
    return [low | (high << _U64(32)) for low, high in zip(words[::2], words[1::2], strict=True)]


def _advance(high, low, inc_high, inc_low):
    """Return state * multiplier + increment, modulo 2**128."""
    product = low * _PCG_LOW
    carry = _high_product(low, _PCG_LOW)
    new_low = product + inc_low
    new_high = carry + high * _PCG_LOW + low * _PCG_HIGH + inc_high + (new_low < product)
    return new_high, new_low


def _high_product(a: np.ndarray, b: np.uint64) -> np.ndarray:
    """Return the upper 64 bits of a 64 by 64 bit product, from 32-bit halves."""
    mask, half = _U64(_WORD), _U64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half)


# Some compilers fuse the multiplication and addition of NumPy's `uniform`. Call NumPy there.
_SAMPLE = np.arange(64), np.array([-0.6, -0.1]), np.array([-0.4, 0.1])
if not np.array_equal(uniform(*_SAMPLE), _numpys_uniform(*_SAMPLE)):
    uniform = _numpys_uniform  # pragma: no cover - on arm64
