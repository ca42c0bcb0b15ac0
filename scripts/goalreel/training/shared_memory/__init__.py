"""Memory that processes share: blocks, lock-free rings and weights, and the processes' start."""
