"""Specs, fingerprints and checksums, which record how goalreel made a file."""
