"""MP4 boxes, read and written: a format library that knows nothing of goalreel."""
