"""Recorders for Gymnasium's vector environments: `RecordVideo` and `FinalFrame`."""

from goalreel.recorders.vector import FinalFrame, RecordVideo

__all__ = ["FinalFrame", "RecordVideo"]
