"""The hosts and files that the arguments of a tool call name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from asl.core.values import Json

__all__ = ["MAX_PATH", "hosts_in", "is_path", "texts_in"]

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


def texts_in(value: Json, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string of a value with the name of its argument, and keys that are URLs."""
    if type(value) is str:
        yield key, value
    elif type(value) is dict:
        for name, each in value.items():
            if URL.search(name):
                yield "", name
            yield from texts_in(each, name)
    elif type(value) is list:
        for each in value:
            yield from texts_in(each, key)


def hosts_in(key: str, text: str) -> Iterator[str]:
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


def is_path(key: str, text: str, folder: str) -> bool:
    """Return whether an argument is a file path, by its name, its form or an existing file."""
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
