"""Record videos from Python: RecordVideo, save_video and recorders of vector environments."""
