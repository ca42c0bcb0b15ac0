"""Write files atomically and reproducibly, with a checksum, and read them back."""
