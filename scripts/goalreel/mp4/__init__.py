"""Read and write MP4 files (ISO/IEC 14496-12) without ffmpeg."""
