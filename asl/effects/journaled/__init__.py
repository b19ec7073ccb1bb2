"""Executions that are kept: their effects, and what a journal has of them."""
