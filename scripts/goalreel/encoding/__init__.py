"""Frames into H.264: ffmpeg, x264 and the choice of the encoder."""
