"""How long a title card stands before an episode; what it shows is told by overlay."""


def card_frames(seconds: float, fps: int) -> int:
    """Return the frames of a title card: at least one, unless it is turned off."""
    return max(round(seconds * fps), 1) if seconds > 0 else 0
