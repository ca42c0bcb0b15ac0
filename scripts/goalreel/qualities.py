"""One scale of quality for both encoders: what `encode.quality` means to each.

Imported while the Snakefile is parsed, so it imports nothing.
"""

# For each quality, of assembled films: the quantiser of the car and of the background.
ASSEMBLED = {"small": (38, 24), "balanced": (34, 20), "best": (26, 14)}
# For each quality, of x264: its preset and its quantiser.
X264 = {"small": ("veryfast", 28), "balanced": ("veryfast", 23), "best": ("veryfast", 17)}
