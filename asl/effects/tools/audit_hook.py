"""Bounds of functions as tools: their connections and files are checked while they run.

An audit hook of Python receives each action before it happens.
"""

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, Final

from asl.core.python_imports import code_folders
from asl.effects.tools.bounds import CallBounds
from asl.states.errors import RaisedError

__all__ = ["enforce_bounds"]

_WATCHED: ContextVar[CallBounds | None] = ContextVar("asl_bounds", default=None)
_watches = False
PROCESSES: Final = frozenset(
    {
        "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
        "os.forkpty", "pty.spawn", "os.startfile",
    }
)  # fmt: skip
FILES: Final = {
    "open": 1, "os.listdir": 1, "os.scandir": 1, "os.remove": 1, "os.rename": 2, "os.link": 2,
    "os.symlink": 2, "os.rmdir": 1, "os.mkdir": 1, "os.truncate": 1, "os.chmod": 1, "os.chown": 1,
    "os.utime": 1, "os.chdir": 1, "sqlite3.connect": 1,
}  # fmt: skip
"""Events that name files, and the number of files."""
WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
LOW_LEVEL: Final = ("start_new_thread", "start_new", "start_joinable_thread")
"""Functions of `_thread` that start a thread."""
HARMLESS: Final = ("/dev/null", "/dev/urandom", "/dev/random")


@contextmanager
def enforce_bounds(bounds: CallBounds) -> Iterator[None]:
    """Apply bounds to Python code in this context and in threads that it starts.

    This is no protection against malicious code: a function is trusted, its arguments are not.
    """
    global _watches
    if not _watches:
        _watches = True
        sys.addaudithook(_heard)
        _watch_threads()
        _watch_processes()
    token = _WATCHED.set(bounds)
    try:
        yield
    finally:
        _WATCHED.reset(token)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """Check an action that the interpreter is about to take."""
    bounds = _WATCHED.get()
    if bounds is None:
        return
    token = _WATCHED.set(None)  # the check itself is not bounded
    try:
        if event in PROCESSES:
            raise bounds.refusal("a function within bounds starts no programs")
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            bounds.connects(arguments[1])
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            bounds.looks_up(arguments[0])
        elif event in FILES and bounds.files:
            _opened(bounds, event, arguments)
    except RaisedError as refusal:
        bounds.latest_refusal = refusal
        raise PermissionError(refusal.cause) from None  # Python code expects this exception
    finally:
        _WATCHED.reset(token)


def _watch_threads() -> None:
    """Apply the bounds of a function to threads that it starts and to its tasks in thread pools.

    The threads of a pool outlive the call, so the bounds belong to the task.
    """
    start: Any = Thread.start
    submit: Any = ThreadPoolExecutor.submit
    for name in LOW_LEVEL:
        if hasattr(_thread, name):
            setattr(_thread, name, partial(_start_held, getattr(_thread, name)))

    def start_within_bounds(thread: Thread) -> None:
        bounds = _WATCHED.get()
        if bounds is not None:
            thread.run = partial(_held, bounds, thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_within_bounds(
        pool: ThreadPoolExecutor, function: Any, /, *arguments: Any, **named: Any
    ) -> Any:
        return submit(pool, _held, _WATCHED.get(), function, *arguments, **named)

    Thread.start = start_within_bounds  # type: ignore[method-assign, assignment]
    ThreadPoolExecutor.submit = submit_within_bounds  # type: ignore[method-assign, assignment]


def _start_held(start: Callable[..., Any], function: Any, /, *arguments: Any, **named: Any) -> Any:
    """Start a thread without `threading` within the bounds of its starter."""
    bounds = _WATCHED.get()
    held = function if bounds is None else partial(_held, bounds, function)
    return start(held, *arguments, **named)


def _watch_processes() -> None:
    """Refuse processes that are started without an audit event, as `multiprocessing` does."""
    try:
        posix: Any = import_module("_posixsubprocess")
    except ImportError:  # on this system every start of a process has an audit event
        return
    fork = posix.fork_exec

    def fork_without_bounds(*arguments: Any) -> Any:
        if _WATCHED.get() is not None:
            _heard("subprocess.Popen", ())
        return fork(*arguments)

    posix.fork_exec = fork_without_bounds


def _held(
    bounds: CallBounds | None, function: Callable[..., Any], /, *arguments: Any, **named: Any
) -> Any:
    """Call a function in another thread within the bounds of its caller."""
    token = _WATCHED.set(bounds)
    try:
        return function(*arguments, **named)
    finally:
        _WATCHED.reset(token)


def _opened(bounds: CallBounds, event: str, arguments: tuple[Any, ...]) -> None:
    reading = event in ("os.listdir", "os.scandir") or (
        event == "open" and not (arguments[2] or 0) & WRITES
    )
    for path in arguments[: FILES[event]]:
        if not isinstance(path, str | bytes | os.PathLike):
            continue  # an open file
        text = os.path.abspath(os.fsdecode(path))
        if not (reading and _belongs_to_python(text)):
            bounds.path(text, reading=reading)


def _belongs_to_python(path: str) -> bool:
    """Return whether Python itself reads a file, for imports and the like."""
    if path in HARMLESS or path.endswith((".py", ".pyc", ".so", ".pyd")):
        return path in HARMLESS or path.startswith((*filter(None, sys.path), *code_folders()))
    return path in sys.path or path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep))
