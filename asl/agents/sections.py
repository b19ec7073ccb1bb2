"""The sections of agents files, by which such files are recognised."""

from pathlib import Path

from asl.core.document import Document

__all__ = ["SECTIONS", "WITH_AGENTS", "is_agents_file"]

WITH_AGENTS = ("agents", "resources", "mocks")
SECTIONS = (*WITH_AGENTS, "tools", "servers", "memory", "aws")


def is_agents_file(document: Document) -> bool:
    """Whether this is an agents file, by its name or, if that says nothing, by its sections."""
    name = Path(document.source.name or "").name
    value = document.value
    if type(value) is not dict or not value.keys().isdisjoint(("StartAt", "States")):
        return False
    stem = name.rpartition(".")[0]
    return stem == "agents" or stem.endswith(".agents") or not value.keys().isdisjoint(SECTIONS)
