"""How a file is written whole, sealed and the same every time."""
