"""Events and RealTime: the events that a document emits, and their channels (8.14).

Events of states are derived from the history, as progress is. Effects deliver them to channels
(`asl.effects.delivery`).
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.errors import ExpressionFault, StateError
from asl.core.pointers import escape
from asl.core.values import Json
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.paths import PathUse, compile_path, parse_path
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Block, compile_settings
from asl.states.settings import BlockSettings

__all__ = [
    "EVENTS",
    "REAL_TIME",
    "EventHook",
    "compile_hooks",
    "document_channels",
    "format_faults",
]

HOOKS: Final[Mapping[str, str]] = MappingProxyType(
    {"OnEnter": "enter", "OnExit": "exit", "OnError": "error"}
)
"""The hooks of a state, and their names in events."""
OF_WORKFLOW: Final = ("OnStateChange", "OnProgress", "OnComplete")
FORMATS: Final = ("json", "text")
"""The formats of `stdout`."""


class EventHook(NamedTuple):
    """An event that a state emits."""

    type: Callable[[Json, Any], BlockSettings]
    on: str
    include: tuple[tuple[str, Evaluate], ...]

    def details(self, data: Json, frame: ExpressionFrame) -> dict[str, Json]:
        """Return the details of the event, without absent values.

        Raises:
            StateError: The computed name of the event is wrong.
        """
        found_type = self.type(data, frame)
        name = found_type.name("Type")
        if name is None:
            raise found_type.invalid_value("Type", "a name")
        found: dict[str, Json] = {}
        for key, evaluate in self.include:
            try:
                found[key] = evaluate(data, frame)
            except StateError:
                continue
        return {"type": name, "on": self.on, "data": found}


def compile_hooks(compiler: Compiler) -> Mapping[str, EventHook] | None:
    """Compile the events of a state by hook; None for none."""
    block: Mapping[str, Json] = compiler.state.get("Events", {})
    found = {
        on: EventHook(
            compile_settings(compiler, f"Events.{name}", ("Type",)),
            on,
            tuple(_included(block[name], compiler.name)),
        )
        for name, on in HOOKS.items()
        if not {"Type", "Type.$"}.isdisjoint(block.get(name, {}))
    }
    return found or None


def _included(hook: Mapping[str, Json], state: str) -> Iterator[tuple[str, Evaluate]]:
    """Yield the values of an event by their last names, or by whole paths if names repeat."""
    paths = [parse_path(text) for text in hook.get("Include", ())]
    last = [path.segments[-1] if path.definite and path.segments else path.text for path in paths]
    for path, name in zip(paths, last, strict=True):
        whole = path.text.removeprefix("$.")
        key = str(name) if path.definite and last.count(name) == 1 else whole
        yield key, compile_path(path, PathUse("Events.Include", state))


# --------------------------------------------------------------------------------------------
# Channels


def document_channels(
    events: Mapping[str, Json], real_time: Mapping[str, Json]
) -> Mapping[str, Mapping[str, Json]]:
    """Return the channels of a document by name, including the one named RealTime."""
    written: Mapping[str, Mapping[str, Json]] = events.get("Channels", {})
    channels = {name: channel for name, channel in written.items() if "Type" in channel}
    if "Transport" in real_time and real_time.get("Enabled") is not False:
        rest = {key: value for key, value in real_time.items() if key != "Enabled"}
        channels["RealTime"] = {"Type": real_time["Transport"], **rest}
    return channels


def format_faults(channel: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield field and fault of settings that `stdout` does not support."""
    if channel.get("Type") != "stdout":
        return
    if channel.get("Format", "json") not in FORMATS:
        yield "Format", f"the format of stdout must be {' or '.join(FORMATS)}"
    for field in ("Endpoint", "Url"):
        if field in channel:
            yield field, f"{field!r} has no effect on stdout"


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    for name in HOOKS:
        hook = node.value["Events"].get(name)
        if type(hook) is not dict:
            continue
        if "Type" not in hook and "Type.$" not in hook:
            message = "the event has no name: 'Type' is missing"
            yield Finding("V-EVT-01", message, node.at("Events", name), at_key=True)
        paths = hook.get("Include")
        for index, text in enumerate(paths if type(paths) is list else ()):
            if type(text) is str and not node.is_computed(text):
                yield from _check_path(text, node.at("Events", name, "Include", index))


def _check_path(text: str, pointer: str) -> Iterator[Finding]:
    try:
        path = parse_path(text)
    except ExpressionFault as fault:
        yield Finding("V-EVT-01", fault.message, pointer, fault.hint)
        return
    if path.variable is not None:
        message = f"an event contains data of the state and of the context object, not {text!r}"
        yield Finding("V-EVT-01", message, pointer, "a path such as $.order.id")


def _check_workflow(block: Mapping[str, Json]) -> Iterator[Finding]:
    channels = block.get("Channels", {})
    known = list(channels) if type(channels) is dict else []
    for name in OF_WORKFLOW:
        hook = block.get(name)
        if type(hook) is not dict or "Channel.$" in hook:
            continue
        channel = hook.get("Channel")
        if channel is None:
            message = "'Channel' is missing"
            yield Finding("V-EVT-01", message, f"/Events/{name}", at_key=True)
        elif type(channel) is str and channel not in known:
            hint = did_you_mean(channel, known) or "add it to 'Channels'"
            message = f"there is no channel {channel!r}"
            yield Finding("V-EVT-01", message, f"/Events/{name}/Channel", hint)
    for name in known:
        if name == "RealTime":
            message = "'RealTime' is the name of the channel of the block 'RealTime'"
            yield Finding("V-EVT-01", message, "/Events/Channels/RealTime", at_key=True)
        if type(channels[name]) is dict and {"Type", "Type.$"}.isdisjoint(channels[name]):
            message = "the channel has no 'Type'"
            yield Finding("V-EVT-01", message, f"/Events/Channels/{escape(name)}", at_key=True)


_LISTS: Final = tuple(f"{name}/Include.$" for name in HOOKS)
"""The lists of paths; they must be constant, so that the document shows the data of events."""


def _missing(block: Mapping[str, Json], node: Node | None) -> Iterator[tuple[str, str]]:
    channels = block.get("Channels", {}) if node is None else {}
    for name, channel in channels.items() if type(channels) is dict else ():
        for field, why in format_faults(channel) if type(channel) is dict else ():
            yield f"/Channels/{escape(name)}/{field}", why


EVENTS = Block(
    "Events",
    _check,
    _check_workflow,
    missing=_missing,
    lacks=(*(f"{name}.$" for name in (*HOOKS, *OF_WORKFLOW, "Channels")), *_LISTS),
)


def _check_real_time(block: Mapping[str, Json]) -> Iterator[Finding]:
    if block and {"Transport", "Transport.$"}.isdisjoint(block):
        message = "'Transport' is missing"
        yield Finding("V-RT-01", message, "/RealTime", at_key=True)


REAL_TIME = Block(
    "RealTime",
    check_workflow=_check_real_time,
    lacks=("Authentication.$", "Events.$"),
)
