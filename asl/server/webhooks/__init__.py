"""Webhooks: signed requests of other systems that start executions."""
