"""Draw graphs as SVG: self-contained, for light and dark themes, or as a part of a page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Final, TypeAlias

from asl.core.errors import AslError
from asl.core.printable import printable
from asl.graphs.labels import shorten
from asl.graphs.layout import Box, Link, Point, place_boxes
from asl.graphs.model import END, START, GraphState, MachineGraph, Terminal, Transition
from asl.states.base import Outline

__all__ = ["Marking", "embedded_svg", "svg"]

MARGIN, PADDING = 16.0, 14.0
LINE = 15.0
FONT, FONT_SMALL = 13.0, 10.0
"""For the width of texts; names are bold."""
MAX_NAME, MAX_DETAIL, MAX_LABEL = 60, 48, 44
DOT = 12.0

_SHAPES: Final = """\
svg{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.machine{fill:none;stroke-dasharray:3 3}
.Choice .state,.Succeed .state,.Fail .state{stroke-width:1.5}
.missing .state,.Approval .state,.Debate .state{stroke-width:1.5}
.missing .state{stroke-dasharray:4 3}
text{text-anchor:middle;dominant-baseline:central}
.small{font-size:10px}
.name{font-weight:600}
.label rect{opacity:.9}
.way{fill:none;stroke-width:1.2}
.catch .way{stroke-dasharray:4 3}
.end{fill:none}"""
_COLOURS: Final = Template("""\
.paper,.label rect{fill:$paper}
.state{fill:$box;stroke:$line}
.machine,.way{stroke:$line}
.Choice .state{stroke:$choice}
.Succeed .state{stroke:$good}
.Fail .state,.missing .state,.catch .way{stroke:$bad}
.Approval .state,.Debate .state{stroke:$human}
text,.dot{fill:$ink}
.small{fill:$soft}
.end{stroke:$ink}
.head{fill:$line}""")
_LIGHT: Final = {
    "ink": "#1f2328",
    "soft": "#57606a",
    "line": "#8c959f",
    "paper": "#fff",
    "box": "#f6f8fa",
    "good": "#1a7f37",
    "bad": "#cf222e",
    "human": "#8250df",
    "choice": "#0969da",
}
_DARK: Final = {
    "ink": "#e6edf3",
    "soft": "#9198a1",
    "line": "#6e7681",
    "paper": "#0d1117",
    "box": "#161b22",
    "good": "#3fb950",
    "bad": "#f85149",
    "human": "#a371f7",
    "choice": "#58a6ff",
}
# Many viewers know no variables of CSS, and nothing of dark schemes.
_STYLE: Final = f"""\
{_SHAPES}
{_COLOURS.substitute(_LIGHT)}
@media (prefers-color-scheme:dark){{{_COLOURS.substitute(_DARK)}}}"""

_WIDE, _NARROW = frozenset("MWmw@%—…"), frozenset("ijlftrI.,:;'|!()[]{} \"")


MAX_PARTS: Final = 5_000
"""States and transitions of a drawing: the time of placing them grows faster than their number."""


@dataclass(frozen=True, slots=True)
class Marking:
    """What a page adds to the drawing of a state.

    Attributes:
        link: Address of what is shown about the state.
        status: Its status, for the attribute `data-status`; empty for none.
        note: A few characters in its corner.
    """

    link: str
    status: str = ""
    note: str = ""


Mark: TypeAlias = Callable[[GraphState], Marking]


def svg(graph: MachineGraph) -> str:
    """Return a graph as a self-contained SVG document.

    Raises:
        AslError: It has more states and transitions than a drawing may show.
    """
    return _document(graph, f"<style>{_STYLE}</style>", 'role="img"', None)


def embedded_svg(graph: MachineGraph, mark: Mark) -> str:
    """Return a graph as SVG for a page, whose style sheet has the style.

    Each state is a link with the JSON Pointer of the state in `data-pointer`.

    Args:
        graph: The graph.
        mark: Returns what a state is marked with.

    Raises:
        AslError: It has more states and transitions than a drawing may show.
    """
    return _document(graph, "", 'class="graph"', mark)


def _document(graph: MachineGraph, style: str, kind: str, mark: Mark | None) -> str:
    """Return a graph as SVG with a style sheet and an attribute."""
    if graph.size > MAX_PARTS:
        raise AslError(
            f"a drawing as SVG has at most {MAX_PARTS} states and transitions, "
            f"this one {graph.size}: use the format 'dot' or 'mermaid'"
        )
    drawn = _drawn(graph, mark)
    width, height = drawn.width + 2 * MARGIN, drawn.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" {kind}>',
        style,
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>',
        '<rect class="paper" width="100%" height="100%"/>',
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
        *drawn.parts,
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A part of the drawing, positioned later."""

    width: float
    height: float
    parts: Sequence[str]


def _drawn(machine: MachineGraph, mark: Mark | None) -> _Drawn:
    """Draw a machine."""
    states: dict[str | Terminal, _Drawn] = {
        each.name: _state(each, mark) for each in machine.states
    }
    names = [START, *states, END]
    used = {name for each in machine.transitions for name in (each.source, each.target)}
    names = [name for name in names if name in states or name in used]
    index = {name: number for number, name in enumerate(names)}
    boxes = [
        Box(states[name].width, states[name].height) if name in states else Box(DOT, DOT)
        for name in names
    ]
    links = [
        Link(index[each.source], index[each.target], *_size(each)) for each in machine.transitions
    ]
    found = place_boxes(boxes, links)
    parts = [
        part
        for each, way, label in zip(machine.transitions, found.ways, found.labels, strict=True)
        for part in _transition(each, way, label)
    ]
    for name, box in zip(names, boxes, strict=True):
        if name in states:
            corner = f"{box.x - box.width / 2:.1f} {box.y - box.height / 2:.1f}"
            parts += [f'<g transform="translate({corner})">', *states[name].parts, "</g>"]
        else:
            parts += _dot(name, box)
    return _Drawn(found.width, found.height, parts)


def _dot(name: str | Terminal, box: Box) -> Iterator[str]:
    at = f'cx="{box.x:.1f}" cy="{box.y:.1f}"'
    if name == START:
        yield f'<circle class="dot" {at} r="{DOT / 2:g}"/>'
    else:
        yield f'<circle class="end" {at} r="{DOT / 2:g}"/>'
        yield f'<circle class="dot" {at} r="{DOT / 2 - 3:g}"/>'


# Transitions


def _size(transition: Transition) -> tuple[float, float]:
    if not transition.label:
        return 0.0, 0.0
    return _width(shorten(transition.label, MAX_LABEL), FONT_SMALL) + 8, LINE


def _transition(transition: Transition, way: Sequence[Point], label: Point | None) -> Iterator[str]:
    yield f'<g class="{transition.kind}">'
    yield f'<path class="way" marker-end="url(#head)" d="{_curve(way)}"/>'
    if label is not None:
        (x, y), (width, height) = label, _size(transition)
        yield f'<g class="label"><title>{_text(transition.label)}</title>'
        corner = f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}"'
        yield f'<rect {corner} width="{width:.1f}" height="{height:g}"/>'
        yield _words(shorten(transition.label, MAX_LABEL), x, y, "small") + "</g>"
    yield "</g>"


def _curve(way: Sequence[Point]) -> str:
    """Return a path through all points that is vertical at both ends."""
    (x, y), *rest = way
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        half = (y + to_y) / 2
        path += f"C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return path


# States


def _state(state: GraphState, mark: Mark | None) -> _Drawn:
    marking = None if mark is None else mark(state)
    drawn = _holder(state, mark, marking) if state.machines else _plain(state, marking)
    about = [f"{state.name} ({state.type})", *state.details]
    about += [state.comment] if state.comment else []
    marks = ""
    if marking is not None:
        marks = f' data-pointer="{escape(state.pointer)}" data-status="{escape(marking.status)}"'
    head = f'<g class="{escape(state.type)}"{marks}><title>{_text(chr(10).join(about))}</title>'
    return _Drawn(drawn.width, drawn.height, [head, *drawn.parts, "</g>"])


def _lines(state: GraphState) -> tuple[float, float, list[tuple[str, str, float]]]:
    """Return width and height of the text in a state, and its lines with their class."""
    lines = [(shorten(state.name, MAX_NAME), "name", LINE)]
    kind = [] if (state.type == "Pass" or state.ends) and not state.details else [state.type]
    small = [*kind, *(shorten(line, MAX_DETAIL) for line in state.details)]
    lines += [(line, "small", LINE - 2) for line in small]
    width = max(_width(text, FONT if kind == "name" else FONT_SMALL) for text, kind, _ in lines)
    return width, sum(height for _, _, height in lines), lines


def _plain(state: GraphState, marking: Marking | None) -> _Drawn:
    inner, tall, _ = _lines(state)
    width, height = inner + 2 * PADDING, tall + PADDING
    return _Drawn(width, height, _face(state, width, height, marking))


def _face(state: GraphState, width: float, height: float, marking: Marking | None) -> list[str]:
    """Draw the outline of a state and its texts; with a marking they are a link."""
    parts = [_outline(state.outline, width, height)]
    y = PADDING / 2
    for text, style, line in _lines(state)[2]:
        parts.append(_words(text, width / 2, y + line / 2, style))
        y += line
    if marking is None:
        return parts
    note = f'<g class="note" transform="translate({width - 2:.1f} 2)"><circle r="7.5"/><text>'
    note += f"{_text(marking.note)}</text></g>"
    return [f'<a href="{escape(marking.link)}">', *parts, note, "</a>"]


def _outline(outline: Outline, width: float, height: float) -> str:
    if outline is Outline.DIAMOND:
        cut_off = min(10.0, height / 2)
        points = [
            (0, height / 2), (cut_off, 0), (width - cut_off, 0),
            (width, height / 2), (width - cut_off, height), (cut_off, height),
        ]  # fmt: skip
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        return f'<polygon class="state" points="{text}"/>'
    radius = height / 2 if outline is Outline.OVAL else 6
    return f'<rect class="state" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"/>'


def _holder(state: GraphState, mark: Mark | None, marking: Marking | None) -> _Drawn:
    """Draw a state around its machines, side by side."""
    head, tall, _ = _lines(state)
    drawn = [(_text(machine.title), _drawn(machine, mark)) for machine in state.machines]
    widths = [max(each.width, _width(title, FONT_SMALL)) + 2 * PADDING for title, each in drawn]
    inside = max(each.height for _, each in drawn) + LINE + 2 * PADDING
    room = sum(widths) + PADDING * (len(widths) - 1)
    width = max(head, room) + 2 * PADDING
    height = tall + inside + 2 * PADDING
    parts = _face(state, width, height, marking)
    x, top = (width - room) / 2, tall + PADDING
    for (title, each), wide in zip(drawn, widths, strict=True):
        frame = f'x="{x:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{inside:.1f}"'
        parts.append(f'<rect class="machine" {frame} rx="4"/>')
        parts.append(f'<text class="small" x="{x + wide / 2:.1f}" y="{top + 9:.1f}">{title}</text>')
        corner = f"{x + (wide - each.width) / 2:.1f} {top + LINE + PADDING / 2:.1f}"
        parts += [f'<g transform="translate({corner})">', *each.parts, "</g>"]
        x += wide + PADDING
    return _Drawn(width, height, parts)


# Texts


def _words(text: str, x: float, y: float, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{_text(text)}</text>'


def _text(words: str) -> str:
    return escape(printable(words, lines=True), quote=False)


def _width(text: str, size: float) -> float:
    """Estimate the width of a text generously: the reader's font is unknown."""
    ems = 0.0
    for each in text:
        if each in _WIDE or ord(each) > 0x2E7F:
            ems += 1.0
        elif each in _NARROW:
            ems += 0.36
        else:
            ems += 0.7 if each.isupper() else 0.58
    return ems * size
