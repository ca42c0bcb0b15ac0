"""Views of a finished run: plots, the report, the model card, comparisons and a LeRobot dataset."""
