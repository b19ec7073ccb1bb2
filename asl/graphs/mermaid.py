"""Draw graphs as Mermaid flowcharts, which code hosts and wikis render."""

from collections.abc import Iterator

from asl.graphs.labels import shorten
from asl.graphs.model import END, START, GraphState, MachineGraph, Terminal
from asl.states.base import Outline, Tone

__all__ = ["mermaid"]

_SHAPES = {
    Outline.DIAMOND: ("{{", "}}"),
    Outline.OVAL: ("([", "])"),
    Outline.HOUSE: ("[/", "/]"),
    Outline.HEXAGON: ("[/", "/]"),
}
_CLASSES = {
    Tone.GOOD: "good",
    Tone.BAD: "bad",
    Tone.HUMAN: "human",
    Tone.CHOICE: "choice",
}
_STYLES = """\
classDef good stroke:#2e7d32,stroke-width:2px
classDef bad stroke:#c62828,stroke-width:2px
classDef human stroke:#6a1b9a,stroke-width:2px
classDef choice stroke:#1565c0,stroke-width:2px"""
MAX_LABEL = 80
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "#quot;"}
    | {each: f"#{ord(each)};" for each in "\\`#%{}"}
)
"""Mermaid decodes entities such as `#quot;` in labels, and obeys `%%{...}%%` even within quotes."""


def mermaid(graph: MachineGraph) -> str:
    """Return a graph as a Mermaid flowchart."""
    writer = _Writer()
    lines = ["flowchart TD", *writer.machine(graph, "  ")]
    lines += [f"  {style}" for style in _STYLES.splitlines()]
    return "\n".join(lines) + "\n"


class _Writer:
    """Gives every state a unique id: names are arbitrary and may repeat in other machines."""

    def __init__(self) -> None:
        self.count = 0

    def next_id(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def machine(self, machine: MachineGraph, indent: str) -> Iterator[str]:
        ids: dict[str | Terminal, str] = {state.name: self.next_id() for state in machine.states}
        for state in machine.states:
            yield from self.state(state, ids[state.name], indent)
        for name, kind in ((START, "start"), (END, "end")):
            if any(name in (each.source, each.target) for each in machine.transitions):
                ids[name] = self.next_id()
                shape = "(( ))" if kind == "start" else "((( )))"
                yield f"{indent}{ids[name]}{shape}"
        for each in machine.transitions:
            arrow = "-.->" if each.kind == "catch" else "-->"
            label = f'|"{_text(each.label)}"|' if each.label else ""
            yield f"{indent}{ids[each.source]} {arrow}{label} {ids[each.target]}"

    def state(self, state: GraphState, id: str, indent: str) -> Iterator[str]:
        words = "<br/>".join(_text(line) for line in (state.name, *state.details))
        label = f'"{words}"'
        if state.machines:
            yield f"{indent}subgraph {id}[{label}]"
            for machine in state.machines:
                inner = self.next_id()
                yield f'{indent}  subgraph {inner}["{_text(machine.title)}"]'
                yield from self.machine(machine, indent + "    ")
                yield f"{indent}  end"
            yield f"{indent}end"
            return
        before, after = _SHAPES.get(state.outline, ("[", "]"))
        style = f":::{_CLASSES[state.tone]}" if state.tone in _CLASSES else ""
        yield f"{indent}{id}{before}{label}{after}{style}"


def _text(words: str) -> str:
    """Return a text escaped for quotes."""
    return (shorten(words, MAX_LABEL) or " ").translate(_ESCAPES)
