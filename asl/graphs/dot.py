"""Draw graphs in DOT, the language of Graphviz."""

from collections.abc import Iterator

from asl.graphs.labels import shorten
from asl.graphs.model import END, START, GraphState, MachineGraph, Terminal
from asl.states.base import Outline, Tone

__all__ = ["dot"]

_SHAPES = {
    Outline.DIAMOND: "diamond",
    Outline.OVAL: "oval",
    Outline.HOUSE: "house",
    Outline.HEXAGON: "hexagon",
}
_COLOURS = {Tone.GOOD: "#2e7d32", Tone.BAD: "#c62828", Tone.HUMAN: "#6a1b9a"}
MAX_LABEL = 80


def dot(graph: MachineGraph) -> str:
    """Return a graph as a DOT digraph."""
    lines = [
        "digraph {",
        "  compound=true",
        '  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11]',
        '  edge [fontname="sans-serif", fontsize=9]',
        *_Writer().machine(graph, "  ")[0],
        "}",
    ]
    return "\n".join(lines) + "\n"


class _Writer:
    """Gives every state a unique id; a state with machines is a cluster."""

    def __init__(self) -> None:
        self.count = 0

    def next_id(self) -> int:
        self.count += 1
        return self.count

    def machine(self, machine: MachineGraph, indent: str) -> tuple[list[str], str]:
        """Return the lines of a machine, and the id of a node in it for arrows to its cluster."""
        lines: list[str] = []
        nodes: dict[str | Terminal, str] = {}
        clusters: dict[str | Terminal, str] = {}
        for state in machine.states:
            nodes[state.name] = f"s{self.next_id()}"
            if state.machines:
                clusters[state.name] = f"cluster_{nodes[state.name]}"
                inner, nodes[state.name] = self.cluster(state, clusters[state.name], indent)
                lines += inner
            else:
                lines.append(f"{indent}{nodes[state.name]} [{', '.join(_looks(state))}]")
        for name, width in ((START, 0.14), (END, 0.18)):
            if any(name in (each.source, each.target) for each in machine.transitions):
                nodes[name] = f"s{self.next_id()}"
                shape = "point" if name == START else "doublecircle"
                lines.append(f'{indent}{nodes[name]} [shape={shape}, width={width}, label=""]')
        for each in machine.transitions:
            looks = [f"label={_quoted(each.label)}"] if each.label else []
            looks += ["style=dashed"] if each.kind == "catch" else []
            for field, end in (("ltail", each.source), ("lhead", each.target)):
                if end in clusters:
                    looks.append(f"{field}={clusters[end]}")
            after = f" [{', '.join(looks)}]" if looks else ""
            lines.append(f"{indent}{nodes[each.source]} -> {nodes[each.target]}{after}")
        return lines, next(iter(nodes.values()), "")

    def cluster(self, state: GraphState, id: str, indent: str) -> tuple[list[str], str]:
        lines = [f"{indent}subgraph {id} {{", f"{indent}  label={_label(state)}"]
        first = ""
        for machine in state.machines:
            inner, node = self.machine(machine, indent + "    ")
            if not node:
                node = f"s{self.next_id()}"
                inner = [f"{indent}    {node} [style=invis]"]
            first = first or node
            head = f"{indent}  subgraph cluster_{self.next_id()} {{ label={_quoted(machine.title)}"
            lines += [f"{head}; style=dashed", *inner, f"{indent}  }}"]
        lines.append(f"{indent}}}")
        return lines, first


def _looks(state: GraphState) -> Iterator[str]:
    yield f"label={_label(state)}"
    if state.outline in _SHAPES:
        yield f"shape={_SHAPES[state.outline]}"
    if state.tone in _COLOURS:
        yield f'color="{_COLOURS[state.tone]}"'
    if state.comment:
        yield f"tooltip={_quoted(state.comment)}"


def _label(state: GraphState) -> str:
    lines = (state.name, *state.details)
    return '"' + "\\n".join(_quoted(line)[1:-1] for line in lines) + '"'


def _quoted(words: str) -> str:
    text = shorten(words, MAX_LABEL).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
