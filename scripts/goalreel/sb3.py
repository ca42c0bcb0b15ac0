"""Stable-Baselines3: `goalreel.sb3.VecVideoRecorder`, a drop-in for its recorder."""

from goalreel.recorders.vec_video_recorder import VecVideoRecorder

__all__ = ["VecVideoRecorder"]
