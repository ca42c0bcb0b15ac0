"""Shared memory between processes: arrays, lock-free rings and weights."""
