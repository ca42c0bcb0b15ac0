"""How a file is written whole, with a checksum, and the same every time."""
