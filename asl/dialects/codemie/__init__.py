"""Workflows of CodeMie: how they are read, written and restored."""
