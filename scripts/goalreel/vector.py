"""Vector environments: `goalreel.vector.RecordVideo`, by Gymnasium's parameters."""

from goalreel.recorders.vector import FinalFrame, RecordVideo

__all__ = ["FinalFrame", "RecordVideo"]
