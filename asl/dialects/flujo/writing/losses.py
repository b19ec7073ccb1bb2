"""Losses of a written blueprint, and the agents that it calls."""

import re

from asl.core.diagnostics import Finding, Severity
from asl.dialects.flujo.blueprint import USES
from asl.dialects.names import FreshNames, provider_of

__all__ = ["Losses"]


class Losses:
    """Findings in the document that is written; each is reported once."""

    def __init__(self) -> None:
        self.found: dict[Finding, None] = {}
        self.agents: dict[str, str] = {}
        """The agents that are to be declared, by the names that the document has for them."""
        self._names = FreshNames(mark="_")

    def add(
        self,
        code: str,
        message: str,
        pointer: str,
        hint: str | None = None,
        *,
        at_key: bool = False,
        severity: Severity | None = None,
    ) -> None:
        """Add a loss.

        Args:
            code: Its code.
            message: What is lost.
            pointer: JSON Pointer of its place in the document.
            hint: What is written instead, or what to do.
            at_key: Whether it is about the key at the place, not about its value.
            severity: Its severity, by default that of its code.
        """
        found = Finding(code, message, pointer, hint, severity=severity, at_key=at_key)
        self.found[found] = None

    def agent(self, name: str, pointer: str) -> str:
        """Return how a blueprint refers to an agent: an import path is one, a name is declared."""
        if ("." in name or ":" in name) and USES.fullmatch(name):
            return name
        if name not in self.agents:
            own = provider_of(name)
            wanted = re.sub(r"\W", "_", own, flags=re.ASCII)
            if not wanted.strip("_") or wanted[0].isdigit():
                wanted = f"agent_{wanted}"
            self.agents[name] = self._names.new(wanted)
        found = self.agents[name]
        if found != name:
            self.add("L-NAME", f"the agent {name!r} is called {found!r}", pointer)
        return f"agents.{found}"
