"""Record videos from Python: RecordVideo and recorders of vector environments."""
