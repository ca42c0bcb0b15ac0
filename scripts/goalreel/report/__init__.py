"""Views of a finished run: plots, the report, the model card and comparisons."""
