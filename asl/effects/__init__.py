"""Layer 6: effects, which perform what the interpreter asks for, on real or virtual time."""
