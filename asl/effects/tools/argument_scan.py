"""Scan of the arguments of a tool call for hosts and files."""

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
"""A URL anywhere in a text; its scheme is searched once per word."""
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:[/\\]{2}")
WHOLE: Final = re.compile(
    r"(?:(?:https?|wss?|ftp):[/\\]*+|[a-z][a-z0-9+.-]*+:[/\\]{2})(?:[^/\\?#]*@)?([^/\\?#\s]+)",
    re.IGNORECASE,
)
"""Beginning of a text that is a URL to its end, whose user name may contain blanks."""
DROPPED: Final = re.compile(r"[\t\r\n]|\A[\0- ]+")
"""Characters that parsers of URLs remove first."""
HOSTS: Final = frozenset({"host", "hostname", "domain", "server", "ip"})
"""Names of arguments with a host."""
URLS: Final = frozenset({"url", "uri", "urls", "uris", "link", "href", "endpoint", "website"})
"""Names of arguments with a URL, possibly without a scheme."""
PATHS: Final = frozenset(
    {"files", "filenames", "paths", "source", "destination", "src", "dst", "cwd"}
)
FILE: Final = frozenset({"path", "file", "filename", "filepath", "dir", "directory", "folder"})
"""Names of arguments with a file, also as the end of a longer name: `output_path`."""
PATH: Final = re.compile(r"[/~]|\.{1,2}(?:[/\\]|$)|[A-Za-z]:[\\/]|file:|\\\\")
"""Beginning of a text that is a path, regardless of its argument."""
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
    """Yield the hosts in a text."""
    for found in URL.findall(text):
        yield _host_of(found)
        yield _host_of(found.replace("\\", "%5C"))  # some parsers take it as part of a name
    if whole := WHOLE.match(DROPPED.sub("", text.rstrip())):
        yield _host_of(f"//{whole[1]}")
    last = key.lower().replace("-", "_").rpartition("_")[2]
    if "://" not in text and text and (last in URLS or last in HOSTS):
        yield _host_of(f"//{text.removeprefix('//')}")


def _host_of(url: str) -> str:
    """Return the host of a URL, empty if parsers could read it differently."""
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
