"""Executions on Temporal."""
