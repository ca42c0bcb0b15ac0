"""Record videos from Python: RecordVideo, and the writer of videos of all recorders."""
