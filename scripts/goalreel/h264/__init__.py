"""H.264 syntax: bits, NAL units, parameter sets, slices, CAVLC; a format library, without ffmpeg."""
