"""Check the files of a run against its plan, and its episodes against Gymnasium."""
