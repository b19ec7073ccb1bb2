"""Layer 6: where executions are kept so that they survive the process that runs them."""
