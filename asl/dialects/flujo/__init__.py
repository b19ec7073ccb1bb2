"""Blueprints of Flujo: how they are read, written and restored."""
