"""What a tool may reach while it answers a call: hosts and files (8.9).

What the arguments name is checked before the call. A host is checked by its name and by the address
that is connected to: whoever connects asks for the address, and connects to no other. Functions,
which connect and open files by themselves, are watched while they run.
"""

from __future__ import annotations

import _thread
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from threading import Thread
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from asl.core.imports import code_folders
from asl.core.values import Json
from asl.expr.glob import compile_glob
from asl.states.blocks.policy import Reach
from asl.states.errors import Raised

__all__ = ["CallBounds", "watching"]

URL: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])[0-9+.-]*+([A-Za-z][A-Za-z0-9+.-]*+:[/\\]{2}[^\s\"'<>]*)"
)
"""A URL anywhere in a text, its scheme looked for once in each word."""
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:[/\\]{2}")
WHOLE: Final = re.compile(
    r"(?:(?:https?|wss?|ftp):[/\\]*+|[a-z][a-z0-9+.-]*+:[/\\]{2})(?:[^/\\?#]*@)?([^/\\?#\s]+)",
    re.IGNORECASE,
)
"""How a text begins that is a URL to its end, in which a user's name may have blanks."""
DROPPED: Final = re.compile(r"[\t\r\n]|\A[\0- ]+")
"""What readers of URLs take out of them before anything else."""
HOSTS: Final = frozenset({"host", "hostname", "domain", "server", "ip"})
"""The arguments that name a host."""
URLS: Final = frozenset({"url", "uri", "urls", "uris", "link", "href", "endpoint", "website"})
"""The arguments that are a URL, maybe without its scheme."""
PATHS: Final = frozenset(
    {"files", "filenames", "paths", "source", "destination", "src", "dst", "cwd"}
)
FILE: Final = frozenset({"path", "file", "filename", "filepath", "dir", "directory", "folder"})
"""The arguments that name a file; these also at the end of a longer name: `output_path`."""
PATH: Final = re.compile(r"[/~]|\.{1,2}(?:[/\\]|$)|[A-Za-z]:[\\/]|file:|\\\\")
"""How a text begins that is a path, whatever its argument is called."""
MAX_PATH: Final = 4096
EMBEDDING: Final = tuple(
    map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96"))
)
"""The networks of IPv6 whose last 32 bits are the address of IPv4 that is reached, as in NAT64."""
NUMBERS: Final = re.compile(r"[0-9][0-9a-fx.]*")
"""An IPv4 address as the C library reads it: `127.1`, `0x7f000001`, `2130706433`."""


class CallBounds:
    """The bounds of one call, from all policies around it (protocol `asl.engine.tools.Bounds`)."""

    def __init__(
        self, tool: str, hosts: Sequence[Reach], files: Sequence[Reach], folder: str | None
    ) -> None:
        self.tool = tool
        self.hosts = tuple(hosts)
        self.folder = folder or (os.getcwd() if files else "")
        self.files = [_Files(each, self.folder) for each in files]
        self.limits_network = bool(hosts)
        self.refusal: Raised | None = None
        """What a function was told last, that it may not do something."""
        self.named: list[str] = []
        """The hosts that the call names, or that were looked up by it."""

    def __bool__(self) -> bool:
        return bool(self.hosts or self.files)

    # What the arguments say

    def check(self, arguments: Json) -> None:
        """Raise Raised("States.Permissions") for arguments that name what may not be reached."""
        for key, text in _texts(arguments):
            if self.hosts:
                for host in _hosts(key, text):
                    self.name(host)
                    self.named.append(host)
            if self.files and _is_path(key, text, self.folder):
                self.path(text, reading=True)

    # Hosts

    def name(self, host: str) -> None:
        """Raise Raised("States.Permissions") unless a host may be reached, by its name."""
        name = _normal(host)
        for reach in self.hosts:
            if _among(name, reach.denied):
                raise self._refused(f"the host {host!r} is denied")
            if reach.allowed is not None and not _among(name, reach.allowed):
                raise self._refused(f"the host {host!r} is not allowed")

    def admit(self, host: str, address: str) -> None:
        """Raise Raised("States.Permissions") unless *host* may be reached at this address."""
        self.name(host)
        found = _plain(address)
        text, name = str(found), _normal(host)
        for reach in self.hosts:
            if _among(text, reach.denied):
                raise self._refused(f"the host {host!r} is at {text}, which is denied")
            if _is_public(found) or _among(text, [*_named(reach.allowed)]):
                continue
            if name == "localhost" and found.is_loopback and _among(name, reach.allowed or ()):
                continue
            raise self._refused(
                f"the host {host!r} is at {text}, an address of this machine or of a private "
                "network, which must be allowed itself"
            )

    async def address(self, host: str, port: int) -> str:
        """Return the address to connect to; raises Raised."""
        from asyncio import get_running_loop

        self.name(host)
        try:
            found = await get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Raised("Agent.NetworkError", f"{host}: {error.strerror or error}") from None
        refusal: Raised | None = None
        denied = await self._denied_addresses()
        for *_, place in found:
            try:
                self.admit(host, str(place[0]))
                if (other := denied.get(str(_plain(str(place[0]))))) is not None:
                    raise self._refused(f"the host {host!r} is {other!r}, which is denied")
            except Raised as error:
                refusal = error
            else:
                return str(place[0])
        raise refusal or Raised("Agent.NetworkError", f"{host}: it has no address")

    async def _denied_addresses(self) -> dict[str, str]:
        """Return the addresses of the hosts that are denied by their names."""
        from asyncio import get_running_loop

        addresses: dict[str, str] = {}
        for host in dict.fromkeys(name for reach in self.hosts for name in reach.denied):
            if "*" in host or _is_address(_normal(host)):
                continue
            try:
                found = await get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError:
                continue  # it has no address that another name could have
            addresses.update((str(_plain(str(place[0]))), host) for *_, place in found)
        return addresses

    def connects(self, address: Any) -> None:
        """Raise Raised("States.Permissions") unless a socket may connect there."""
        if not self.hosts:
            return
        if type(address) is not tuple:
            raise self._refused("it connects to a socket of this machine")
        place = str(address[0])
        if not _is_address(place):
            raise self._refused(f"it connects to {place!r}, which is no address")
        allowed = [host for each in self.hosts for host in each.allowed or ()]
        denied = [host for each in self.hosts for host in each.denied]
        host = next(_at(place, [*denied, *self.named, *allowed]), place)
        self.admit(host, place)

    def looks_up(self, host: Any) -> None:
        """Take note of a host that is looked up, if it may be reached."""
        if self.hosts and isinstance(host, str | bytes):
            name = host if isinstance(host, str) else host.decode(errors="replace")
            self.name(name)
            self.named.append(name)

    # Files

    def path(self, path: str, *, reading: bool) -> None:
        """Raise Raised("States.Permissions") unless a file may be touched."""
        if path.lower().startswith("file:"):
            path = urlsplit(path).path
        if "\0" in path or len(path) > MAX_PATH:
            raise self._refused("a path that no file can have")
        for each in self.files:
            fault = each.fault(path, reading)
            if fault is not None:
                raise self._refused(f"{path!r} {fault}")

    def _refused(self, why: str) -> Raised:
        return Raised("States.Permissions", f"tool {self.tool!r}: {why}")


class _Files:
    """The files of one policy; relative paths begin at a folder."""

    def __init__(self, reach: Reach, folder: str) -> None:
        self.reach = reach
        self.folder = folder

    @cached_property
    def allowed(self) -> list[list[str]] | None:
        """The patterns that are allowed, by segments, after links."""
        patterns = self.reach.allowed
        return None if patterns is None else [_pattern(each, self.folder) for each in patterns]

    @cached_property
    def denied(self) -> list[list[str]]:
        """The patterns that are denied, by segments: as they are written, and after links."""
        return [
            _pattern(each, self.folder, resolve)
            for each in self.reach.denied
            for resolve in (False, True)
        ]

    def fault(self, path: str, reading: bool) -> str | None:
        """Say why a file may not be touched, None where it may."""
        written = os.path.normpath(os.path.join(self.folder, os.path.expanduser(path)))
        real = os.path.realpath(os.path.join(self.folder, os.path.expanduser(path)))
        if any(_fits(each, pattern) for each in (written, real) for pattern in self.denied):
            return "is denied"
        if self.allowed is not None and not any(_fits(real, each) for each in self.allowed):
            where = "" if real == written else f", which is {real!r},"
            return f"{where} is not allowed".removeprefix(", ") if where else "is not allowed"
        if os.path.isdir(real):
            return None
        extensions, most = self.reach.extensions, self.reach.most
        if extensions is not None and os.path.splitext(real)[1].lower() not in extensions:
            return "has an ending that is not allowed"
        if most is not None and os.path.isfile(real) and os.path.getsize(real) > most:
            return f"has more than {most} bytes"
        return None


def _pattern(pattern: str, folder: str, resolve: bool = True) -> list[str]:
    """Return the segments of a pattern; what stands before its first star may be a link."""
    if not pattern.startswith("**"):
        pattern = os.path.join(folder, os.path.expanduser(pattern))
    else:
        pattern = f"/{pattern}"
    segments = os.path.normpath(pattern).split("/")
    stars = next((i for i, each in enumerate(segments) if "*" in each), len(segments))
    if resolve and stars > 1:
        fixed = os.path.realpath("/".join(segments[:stars]) or "/")
        segments = [*fixed.rstrip("/").split("/"), *segments[stars:]]
    return segments


def _fits(path: str, pattern: list[str]) -> bool:
    """Whether a path fits a pattern: `*` is within a segment, `**` any number of segments."""
    reached = {0}
    for segment in path.split("/"):
        following = set()
        for at in _skipped(reached, pattern):
            if at < len(pattern) and pattern[at] == "**":
                following.add(at)
            elif at < len(pattern) and _glob(pattern[at])(segment):
                following.add(at + 1)
        reached = following
    return len(pattern) in _skipped(reached, pattern)


def _skipped(reached: set[int], pattern: list[str]) -> set[int]:
    """Return where a match may stand, as `**` may stand for no segment."""
    found = set(reached)
    for at in reached:
        while at < len(pattern) and pattern[at] == "**":
            at += 1
            found.add(at)
    return found


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> Any:
    return compile_glob(pattern)


def _named(patterns: Sequence[str] | None) -> Iterator[str]:
    """Yield the patterns that name something: `*` alone names no address of this machine."""
    return (each for each in patterns or () if any(map(str.isalnum, each)))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is of the internet: not of this machine, its network, or many hosts."""
    return address.is_global and not address.is_multicast


def _among(name: str, patterns: Sequence[str]) -> bool:
    return any(_glob(_normal(each))(name) for each in patterns)


# What arguments name


def _texts(value: Json, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a value with the name of its argument, and names that are URLs."""
    if type(value) is str:
        yield key, value
    elif type(value) is dict:
        for name, each in value.items():
            if URL.search(name):
                yield "", name
            yield from _texts(each, name)
    elif type(value) is list:
        for each in value:
            yield from _texts(each, key)


def _hosts(key: str, text: str) -> Iterator[str]:
    """Yield the hosts that a text names."""
    for found in URL.findall(text):
        yield _host_of(found)
        yield _host_of(found.replace("\\", "%5C"))  # to some it is a character of a name
    if whole := WHOLE.match(DROPPED.sub("", text.rstrip())):
        yield _host_of(f"//{whole[1]}")
    last = key.lower().replace("-", "_").rpartition("_")[2]
    if "://" not in text and text and (last in URLS or last in HOSTS):
        yield _host_of(f"//{text.removeprefix('//')}")


def _host_of(url: str) -> str:
    """Return the host of a URL; one that readers could understand differently has none."""
    if "\\" in url or any(ord(each) <= 32 or ord(each) == 127 for each in url):
        return url
    try:
        return unquote(urlsplit(url).hostname or "")
    except ValueError:
        return url


def _is_path(key: str, text: str, folder: str) -> bool:
    last = key.lower().replace("-", "_").rpartition("_")[2]
    if last in FILE or (key.lower() in PATHS and "://" not in text):
        return bool(text)
    if SCHEME.match(text) and not text.lower().startswith("file:"):
        return False
    if PATH.match(text) or "../" in text or "..\\" in text:
        return True
    if not text or len(text) > MAX_PATH or "\0" in text:
        return False
    try:
        return os.path.lexists(os.path.join(folder, text))
    except (OSError, ValueError):
        return False


# Addresses


def _at(place: str, hosts: list[str]) -> Iterator[str]:
    """Yield those of the hosts that have an address."""
    for host in hosts:
        if "*" in host or _is_address(host):
            continue
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            continue
        if any(_plain(str(each[-1][0])) == _plain(place) for each in found):
            yield host


def _normal(host: str) -> str:
    """Return a host as it is compared: in small letters, without brackets and the last dot."""
    host = host.strip("[]").rstrip(".").lower()
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return host
    return str(_plain(host)) if _is_address(host) else host


def _is_address(host: str) -> bool:
    try:
        _read(host)
    except ValueError:
        return False
    return True


def _read(host: str) -> IPv4Address | IPv6Address:
    """Return the address that a host is written as; raises ValueError for a name."""
    if NUMBERS.fullmatch(host):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            raise ValueError(f"{host!r} is no address") from None
    return ip_address(host.partition("%")[0])


def _plain(address: str) -> IPv4Address | IPv6Address:
    """Return the address that is reached: one of IPv6 may stand for one of IPv4."""
    found = _read(address)
    if isinstance(found, IPv6Address):
        if int(found) > 1 and any(found in network for network in EMBEDDING):
            found = IPv4Address(int(found) & 0xFFFFFFFF)
        else:
            found = found.ipv4_mapped or found.sixtofour or found
    if found.is_unspecified:  # leads to this machine
        return IPv4Address("127.0.0.1") if found.version == 4 else IPv6Address("::1")
    return found


# Functions, which connect and open files by themselves


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
"""The events that name files, and how many."""
WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
LOW_LEVEL: Final = ("start_new_thread", "start_new", "start_joinable_thread")
"""The functions of `_thread` that start a thread."""
HARMLESS: Final = ("/dev/null", "/dev/urandom", "/dev/random")


@contextmanager
def watching(bounds: CallBounds) -> Iterator[None]:
    """Hold what Python code does in this context, and in threads that it starts, to bounds.

    Code that means harm can get around this: a function is trusted, its arguments are not.
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
    """Hear what the interpreter is about to do."""
    bounds = _WATCHED.get()
    if bounds is None:
        return
    token = _WATCHED.set(None)  # what is done to find out is not held to anything
    try:
        if event in PROCESSES:
            raise bounds._refused("a function within bounds starts no programs")
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            bounds.connects(arguments[1])
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            bounds.looks_up(arguments[0])
        elif event in FILES and bounds.files:
            _opened(bounds, event, arguments)
    except Raised as refusal:
        bounds.refusal = refusal
        raise PermissionError(refusal.cause) from None  # which Python code is prepared for
    finally:
        _WATCHED.reset(token)


def _watch_threads() -> None:
    """Hold threads that a function within bounds starts, and what it hands to pools, to them.

    The threads of a pool outlive the call, so what is handed over is held and not the thread.
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
    """Start a thread without `threading` within the bounds of the one that starts it."""
    bounds = _WATCHED.get()
    held = function if bounds is None else partial(_held, bounds, function)
    return start(held, *arguments, **named)


def _watch_processes() -> None:
    """Refuse processes that are started without an audit event, as `multiprocessing` does."""
    try:
        posix: Any = import_module("_posixsubprocess")
    except ImportError:  # a system where every start of a process is heard
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
    """Call a function in another thread within the bounds of the one that has asked for it."""
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
            continue  # a file that is open already
        text = os.path.abspath(os.fsdecode(path))
        if not (reading and _belongs_to_python(text)):
            bounds.path(text, reading=reading)


def _belongs_to_python(path: str) -> bool:
    """Whether Python itself reads this to import modules and the like."""
    if path in HARMLESS or path.endswith((".py", ".pyc", ".so", ".pyd")):
        return path in HARMLESS or path.startswith((*filter(None, sys.path), *code_folders()))
    return path in sys.path or path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep))
