"""What is lost on the way to a blueprint, and which agents it asks."""

from asl.core.diagnostics import Finding
from asl.dialects.flujo.blueprint import USES

__all__ = ["Losses"]


class Losses:
    """Findings in the document that is written; each is told once."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.agents: dict[str, None] = {}
        """The agents that are to be declared."""

    def add(
        self,
        code: str,
        message: str,
        pointer: str,
        hint: str | None = None,
        *,
        at_key: bool = False,
    ) -> None:
        finding = Finding(code, message, pointer, hint, at_key=at_key)
        if finding not in self.found:
            self.found.append(finding)

    def agent(self, name: str, pointer: str) -> str:
        """Return how a blueprint refers to an agent: an import path is one, a name is declared."""
        if ("." in name or ":" in name) and USES.fullmatch(name):
            return name
        found = "".join(char if char.isalnum() or char == "_" else "_" for char in name)
        if not found or found[0].isdigit():
            found = f"agent_{found}"
        if found != name:
            self.add("L-NAME", f"the agent {name!r} is called {found!r}", pointer)
        self.agents[found] = None
        return f"agents.{found}"
