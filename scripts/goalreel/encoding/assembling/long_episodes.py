"""Episodes of more pictures than one IDR picture can number.

After 16,383 pictures the order's 16 bits would tell a picture from before the IDR picture. A new
one would show an empty track in the midst of an episode. So the last picture that fits is kept as
a long-term reference: nobody predicts from it, but orders count from it on, and the IDR picture
stays the one reference. Source: Rec. ITU-T H.264, 8.2.1.1, 8.2.4.2.1, 8.2.5. Slices after it differ
in frame_num and in what follows from that.
"""

from dataclasses import replace

import numpy as np

from goalreel.encoding.assembling.sample_parts import Samples, Store
from goalreel.errors import GoalreelError
from goalreel.h264.parameter_sets import FRAME_NUM_BITS

LONGEST = 16_383  # pictures to the next reference picture, each with 2 more than the one before
_MOST = LONGEST * ((1 << FRAME_NUM_BITS) - 1)


def restarted(rows: np.ndarray, counts: np.ndarray, store: Store) -> Samples:
    """Return samples in which every so manieth picture is a reference picture.

    rows, counts: see assembly.Samples. Raises GoalreelError if an episode has more pictures than
    frame_num can tell apart.
    """
    longest = int(counts.max(initial=0))
    if longest <= LONGEST:
        return Samples(store.collected(), rows, counts)
    if longest > _MOST:
        raise GoalreelError(
            f"an episode of {longest + 1} pictures; an assembled film holds {_MOST + 1}; choose "
            f"encode.encoder: x264"
        )
    rounds = np.maximum(counts - 1, 0) // LONGEST
    is_kept = (counts > 0) & (counts % LONGEST == 0)
    changed = np.flatnonzero((rounds > 0) | is_kept)
    rows, made = rows.copy(), {}
    for frame in changed.tolist():
        for slot, part in enumerate(rows[frame].tolist()):
            key = part, int(rounds[frame]), bool(is_kept[frame])
            if part and key not in made:
                header, data = store.slice(part)
                kept = {"ref_idc": 1, "long_term": 0} if key[2] else {}
                made[key] = store.add(replace(header, frame_num=1 + key[1], **kept), data)
            rows[frame, slot] = made[key] if part else 0
    return Samples(store.collected(), rows, counts)
