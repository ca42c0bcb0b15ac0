"""Two independent H.264 decoders, FFmpeg and OpenH264, which share no code."""

import numpy as np
from assembling import decode_strictly

from goalreel.encoding import ffmpeg

DECODERS = ["FFmpeg", "OpenH264"]  # parameter of a test


def decode(decoder: str, stream: bytes, size: tuple[int, int]) -> np.ndarray:
    """Return the frames of an Annex B stream in yuv420p, (frames, H * 3 / 2, W) uint8."""
    if decoder == "FFmpeg":
        return decode_strictly(stream)
    arguments = ["-xerror", "-c:v", "libopenh264", "-f", "h264", "-i", "pipe:0"]
    arguments += ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "pipe:1"]
    samples = np.frombuffer(ffmpeg.output(arguments, [stream]), np.uint8)
    return samples.reshape(-1, size[1] * 3 // 2, size[0])
