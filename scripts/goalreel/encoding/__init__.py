"""Encode frames as H.264 with x264 or by assembling coded slices."""
