"""Read and write H.264 streams without ffmpeg: bits, NAL units, slices, CAVLC."""
