"""Episodes, reaches and recordings, played into the trajectory file."""
