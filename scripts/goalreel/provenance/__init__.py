"""The spec, the code's fingerprint and checksums: what made a file, and is it the one planned."""
