"""Pictures coded once, and H.264 samples joined from them."""
