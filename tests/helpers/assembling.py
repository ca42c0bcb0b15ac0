"""Assembled films made in process, and strict decoders for them."""

from dataclasses import dataclass, replace
from pathlib import Path

import av
import numpy as np
from av.bitstream import BitStreamFilterContext

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.encode_atlas import code_atlas
from goalreel.encoding.encoder_selection import choose
from goalreel.encoding.yuv import Yuv420p
from goalreel.films.render import render_states
from goalreel.films.segment import assemble_segment
from goalreel.h264.bits import annex_b
from goalreel.h264.parameter_sets import StreamParameters, pps, sps
from goalreel.provenance.spec import NO_SPEC
from goalreel.rendering.atlas import Atlas, state_keys
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.gymnasium_style import draw_frames
from goalreel.rendering.layers import cut_patches
from goalreel.rendering.overlay import add_overlay, captions, empty_track
from goalreel.simulation.trajectories import Trajectories
from goalreel.workflow.config import load_config

CAPTION = "Reach {reach} · seed {seed} · {steps} steps"


def quantizers(quality: str = "balanced") -> tuple[int, int]:
    """Return the quantizers of frames and title card for a quality."""
    config = load_config({"encode": {"quality": quality}})
    settings = choose(config).settings
    return settings["qp"], settings["card_qp"]


def every_nth_state(trajectories: Trajectories, every: int) -> Trajectories:
    """Return trajectories with every n-th state of each episode and its last state."""
    parts = []
    for episode in range(len(trajectories)):
        states, actions, rewards = trajectories.episode(episode)
        kept = sorted({*range(0, len(states), every), len(states) - 1})
        parts.append((states[kept], actions[np.array(kept[:-1], int)], rewards[kept[:-1]]))
    states, actions, rewards = (np.concatenate(part) for part in zip(*parts, strict=True))
    offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
    thin = {"offsets": offsets, "states": states, "actions": actions, "rewards": rewards}
    return replace(trajectories, **thin)


def atlas_of(env: str, keys: np.ndarray) -> Atlas:
    """Return an atlas of some of a Mountain Car's frames."""
    keys = np.unique(keys, axis=0)
    background, pictures = draw_frames(env, keys)
    return Atlas(keys.astype(np.int16), background, cut_patches(background, pictures))


@dataclass(frozen=True)
class Assembled:
    """A shard's frames with their overlay, and the coded atlas and film made from them."""

    cache: FrameCache
    coded_atlas: CodedAtlas
    path: Path

    @property
    def size(self) -> tuple[int, int]:
        """The (width, height) in pixels."""
        return self.cache.background.shape[1], self.cache.background.shape[0]


def assembled(
    path: Path,
    env: str,
    trajectories: Trajectories,
    quality: str = "balanced",
    caption: str = CAPTION,
    hud: bool = False,
) -> Assembled:
    """Draw, code and assemble trajectories, with a coded atlas of only the frames that they show."""
    atlas = atlas_of(env, state_keys(trajectories, env))
    seen = atlas.background, env, hud
    coded_atlas = code_atlas(atlas, *empty_track(*seen), quantizers(quality))
    frames = render_states(trajectories, atlas, env, NO_SPEC)
    texts = captions(caption, trajectories, env, "reach")
    cache = add_overlay(frames, trajectories, env, texts, hud, True)
    assemble_segment(cache, coded_atlas, path, 30, "{}")
    return Assembled(cache, coded_atlas, path)


def stream_of(size: tuple[int, int], units: list[bytes]) -> bytes:
    """Return an Annex B stream of goalreel's parameter sets and these NAL units."""
    stream = StreamParameters(size, 30)
    return annex_b([sps(stream), pps(stream), *units])


def units_of(stream: bytes) -> list[bytes]:
    """Return the NAL units of an Annex B stream."""
    return [unit.rstrip(b"\0") for unit in stream.split(b"\0\0\1")[1:]]


def rbsp_of(unit: bytes) -> bytes:
    """Return the payload of a NAL unit, without its first byte and without escapes."""
    return unit[1:].replace(b"\0\0\3", b"\0\0")


def packets_of(path: Path, kind: str = "video") -> list[av.Packet]:
    """Return the packets of the first stream of this kind, using only the index."""
    with av.open(str(path), options={"fflags": "noparse"}) as container:
        stream = getattr(container.streams, kind)[0]
        return [packet for packet in container.demux(stream) if packet.size]


def nal_types(packet: bytes) -> set[int]:
    """Return the types of a packet's NAL units, which follow lengths of 4 bytes."""
    found, place = set(), 0
    while place < len(packet):
        found.add(packet[place + 4] & 31)
        place += 4 + int.from_bytes(packet[place : place + 4], "big")
    return found


def byte_stream(path: Path) -> bytes:
    """Return a film as an Annex B stream, converted by FFmpeg's filter."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        filtered = BitStreamFilterContext("h264_mp4toannexb", stream)
        packets = [p for packet in container.demux(stream) for p in filtered.filter(packet)]
    return b"".join(map(bytes, packets))


def decode_strictly(stream: bytes) -> np.ndarray:
    """Return a stream's frames as FFmpeg's h264 decodes them, (frames, H * 3 / 2, W) uint8.

    Fail on any deviation from the standard, also on a warning.
    """
    before = av.logging.get_level()
    av.logging.set_level(av.logging.WARNING)
    try:
        with av.logging.Capture() as logs:
            # Without a container, whose probing would add errors of its own.
            context = av.CodecContext.create("h264", "r")
            context.options = {"err_detect": "explode"}
            context.thread_count = 1
            packets = [*context.parse(stream), *context.parse(b""), None]
            pictures = [f.to_ndarray() for packet in packets for f in context.decode(packet)]
    finally:
        av.logging.set_level(before)
    assert not logs, logs[:5]
    return np.stack(pictures)


def psnr(pictures: np.ndarray, cache: FrameCache) -> np.ndarray:
    """Return the luma PSNR of each frame against the frame cache in dB, (frames,) float64."""
    height = cache.background.shape[0]
    errors = [
        np.square(picture[:height].astype(np.int32) - frame[:height]).mean()
        for picture, frame in zip(pictures, Yuv420p(cache).frames(), strict=True)
    ]
    return 10 * np.log10(255**2 / np.maximum(errors, 1e-9))
