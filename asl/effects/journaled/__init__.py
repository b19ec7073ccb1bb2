"""Effects of executions in a store, and the content of their journals."""
