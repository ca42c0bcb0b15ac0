"""Is every file what the run planned, and every episode what Gymnasium plays."""
