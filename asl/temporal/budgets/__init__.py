"""Budgets that executions on Temporal share, and those of calls on workers."""
