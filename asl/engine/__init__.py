"""Layer 5: the interpreter, its frames, retry and catch, history, and executions."""
