"""H.264 syntax: bits, NAL units, parameter sets, slices and CAVLC, without ffmpeg."""
