"""Tool calls of agents: which tools they may use, and what these may reach."""
