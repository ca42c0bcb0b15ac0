"""A recorder for Stable-Baselines3's vector environments: `VecVideoRecorder`."""

from goalreel.recorders.vec_video_recorder import VecVideoRecorder

__all__ = ["VecVideoRecorder"]
