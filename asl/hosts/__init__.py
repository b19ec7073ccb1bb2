"""Layer 6: hosts perform what the interpreter asks for: in memory, on real or virtual time."""
