"""What environments draw, as frames of numbered blocks."""
