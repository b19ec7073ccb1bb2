"""Delivery of events to the channels of a document, without confirmation (Specification 8.14).

Each channel has a thread of its own, so no sink can slow down the execution or another channel. The
queue of a slow sink is bounded; excess events are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any, Final, TypeAlias

from asl.core.errors import AslError, StateError
from asl.core.private_files import private_opener
from asl.core.python_imports import import_object
from asl.core.values import Json, compact, copy_foreign
from asl.engine.events import ENDINGS, Event
from asl.engine.exception_mapping import describe_exception
from asl.states.blocks.events import document_channels

__all__ = ["DeferredSink", "Delivery", "Sink", "Sinks", "delivery_of", "named_sink", "sink_of"]

Sink: TypeAlias = Callable[[dict[str, Json], dict[str, Json]], object]
"""Takes `(event, channel)`: an event, and the settings of its channel."""
Sinks: TypeAlias = Mapping[str, Sink]
"""Sinks by name or type of a channel; `*` applies to all others."""

WAITING: Final = 1000
"""Maximum number of events in the queue of a sink."""
PATIENCE: Final = 5.0
"""Real seconds that the end of an execution waits for all sinks together."""
PROGRESS: Final = ("ProgressUpdated", "MilestoneReached")
EMITTED: Final = "EventEmitted"
INCLUDED: Final = ("IncludeStateSucceeded", "IncludeStateFailed")
"""End events of an included document."""

_Wants = Callable[[Event], bool]


class DeferredSink:
    """A sink that collects events, for another process that sends them; it needs no thread."""

    def __init__(self) -> None:
        self.waiting: list[tuple[dict[str, Json], dict[str, Json]]] = []
        """Events, each with the settings of its channel."""

    def __call__(self, event: dict[str, Json], channel: dict[str, Json]) -> None:
        """Collect an event."""
        self.waiting.append((event, channel))

    def take(self) -> list[Json]:
        """Return the collected events, once."""
        found, self.waiting = self.waiting, []
        return [list(each) for each in found]


class _Channel:
    """One channel: its sink, and the thread that serves it."""

    def __init__(self, settings: dict[str, Json], sink: Sink, wants: _Wants) -> None:
        self.settings = settings
        self.sink = sink
        self.wants = wants
        self.waiting: Queue[Event | None] = Queue(WAITING)
        self.thread: Thread | None = None
        self.delivered = self.failed = self.dropped = 0
        self.error = ""

    def put(self, event: Event) -> None:
        """Add an event to the queue."""
        if isinstance(self.sink, DeferredSink):
            self.sink(event.to_json(), dict(self.settings))
            self.delivered += 1
            return
        if self.thread is None:
            self.thread = Thread(target=self.serve, name="asl-channel", daemon=True)
            self.thread.start()
        try:
            self.waiting.put_nowait(event)
        except Full:
            self.dropped += 1

    def serve(self) -> None:
        """Pass the events to the sink, one after the other."""
        while (event := self.waiting.get()) is not None:
            try:
                answer = self.sink(copy_foreign(event.to_json()), dict(self.settings))
                if isawaitable(answer):
                    raise TypeError("the sink must be a plain function: no event loop awaits it")
                self.delivered += 1
            except BaseException as error:  # user code: no exception of it may reach the execution
                self.failed += 1
                self.error = self.error or describe_exception(error)

    def stop(self) -> None:
        """Ask the thread to end when the queue is empty."""
        while True:
            try:
                self.waiting.put_nowait(None)
                return
            except Full:  # a hanging sink: the latest queued event makes room
                try:
                    self.waiting.get_nowait()
                    self.dropped += 1
                except Empty:
                    continue

    def report(self) -> dict[str, Json]:
        """Return the counts of its events."""
        waiting = max(0, self.waiting.qsize() - 1)
        found: dict[str, Json] = {
            "delivered": self.delivered,
            "failed": self.failed,
            "dropped": self.dropped + waiting,
        }
        return {**found, "error": self.error} if self.error else found


class Delivery:
    """The channels of one execution."""

    def __init__(self, channels: Mapping[str, _Channel], sinks: Sinks) -> None:
        self.channels = dict(channels)
        self.sinks = sinks

    def open(self, place: tuple[str | int, ...], block: Callable[[str], Any]) -> None:
        """Open the channels of an included document, which receive its events.

        Raises:
            StateError: A channel has no sink.
        """
        around = "/".join(map(str, place))
        try:
            opened = _opened(block, self.sinks)
        except AslError as error:
            raise StateError("States.Runtime", f"state '{place[-1]}': Events: {error}") from None
        for name, channel in opened.items():
            if f"{around}/{name}" not in self.channels:
                channel.wants = _within(place, channel.wants, block, name)
                self.channels[f"{around}/{name}"] = channel

    def listen(self, event: Event) -> None:
        """Pass an event to the channels that accept it."""
        for channel in self.channels.values():
            if channel.wants(event):
                channel.put(event)

    @property
    def has_threads(self) -> bool:
        """Whether a thread serves a channel."""
        return any(each.thread is not None for each in self.channels.values())

    def close(self) -> None:
        """Wait for the sinks, for a limited time."""
        from time import monotonic

        begun = [each for each in self.channels.values() if each.thread is not None]
        for channel in begun:
            channel.stop()
        until = monotonic() + PATIENCE
        for channel in begun:
            if channel.thread is not None:
                channel.thread.join(max(0.0, until - monotonic()))

    def report(self) -> dict[str, Json]:
        """Return the counts of events by channel."""
        return {name: channel.report() for name, channel in self.channels.items()}


def delivery_of(block: Callable[[str], Any], sinks: Sinks, opens: bool = False) -> Delivery | None:
    """Open the channels of a document, None without any.

    Args:
        block: Returns a block of the document by its name.
        sinks: Sinks of the channels.
        opens: Whether included documents may have channels.

    Raises:
        AslError: A channel has no sink.
    """
    channels = _opened(block, sinks)
    return Delivery(channels, sinks) if channels or opens else None


def _opened(block: Callable[[str], Any], sinks: Sinks) -> dict[str, _Channel]:
    hooks: Mapping[str, Any] = block("Events") or {}
    channels = document_channels(hooks, block("RealTime") or {})
    return {
        name: _Channel(
            {"name": name, **settings},
            sink_of(name, settings, sinks),
            _wants(name, settings, hooks),
        )
        for name, settings in channels.items()
    }


def _within(
    place: tuple[str | int, ...], wants: _Wants, block: Callable[[str], Any], name: str
) -> _Wants:
    """Return the filter of events for a channel of an included document."""
    hook = (block("Events") or {}).get("OnComplete", {})
    ends = hook.get("Channel") == name

    def wanted(event: Event) -> bool:
        if event.path == place:
            return ends and event.type in INCLUDED
        return event.path[: len(place)] == place and wants(event)

    return wanted


def sink_of(name: str, channel: Mapping[str, Json], sinks: Sinks) -> Sink:
    """Return the sink of a channel: that of its name, of its type, or of all others.

    Raises:
        AslError: There is none.
    """
    kind = channel["Type"]
    for each in (name, kind, "*"):
        if each in sinks:
            return sinks[each]
    if kind == "stdout":
        return _print
    raise AslError(
        f"no sink is bound for the channel {name!r}: give a function, "
        f"sinks={{{kind!r}: ...}}, or --sink {kind}=MODULE:FUNCTION on the command line"
    )


def named_sink(text: str, folders: Iterable[Path] = ()) -> Sink:
    """Return the sink `stdout`, `jsonl:FILE` or `module:function`.

    Args:
        text: The sink.
        folders: Folders to search for a module or a file.

    Raises:
        AslError: There is no such sink.
    """
    if text == "stdout":
        return _print
    kind, _, place = text.partition(":")
    if kind == "jsonl" and place:
        return _appending(place)
    try:
        sink: Sink = import_object(text, folders)
    except AslError as error:
        raise AslError(f"there is no sink {text!r}: {error}") from error
    return sink


def _appending(path: str) -> Sink:
    """Return a sink that appends a line of JSON for each event."""

    def append(event: dict[str, Json], channel: dict[str, Json]) -> None:
        # One write, since other processes append as well.
        with open(path, "ab", buffering=0, opener=private_opener) as file:
            file.write(f"{compact(event)}\n".encode())

    return append


def _wants(name: str, channel: Mapping[str, Json], hooks: Mapping[str, Any]) -> _Wants:
    """Return the filter of events for a channel; events that the document emits go to all
    channels.
    """
    if name == "RealTime":
        names = channel.get("Events")
        return lambda event: (
            names is None
            or event.type in names
            or (event.type == EMITTED and event.details["type"] in names)
        )
    of = {
        hook for hook in hooks if type(hooks[hook]) is dict and hooks[hook].get("Channel") == name
    }

    def wants(event: Event) -> bool:
        kind = event.type
        return (
            kind == EMITTED
            or ("OnStateChange" in of and kind.endswith(("StateEntered", "StateExited")))
            or ("OnProgress" in of and kind in PROGRESS)
            or ("OnComplete" in of and kind in ENDINGS.values())
        )

    return wants


def _print(event: dict[str, Json], channel: dict[str, Json]) -> None:
    """Print a line for an event."""
    text = compact(event)
    if channel.get("Format") == "text":
        place = "/".join(map(str, event["path"]))
        details = event["details"]
        name = details["type"] if event["type"] == EMITTED else event["type"]
        text = " ".join(filter(None, (event["timestamp"], name, place, compact(details))))
    print(text, flush=True)
