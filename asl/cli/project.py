"""Settings of a project: defaults for options of the command line.

They are in `asl.toml`, or under `[tool.asl]` of `pyproject.toml`, in the current folder or the
nearest parent folder within the repository.
"""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import click

from asl.core.diagnostics import did_you_mean
from asl.core.environment import require_extra
from asl.core.errors import AslError
from asl.core.printable import is_printable
from asl.core.values import Json

__all__ = ["FILES", "Project", "find_project", "is_from_project"]

FILES: Final = ("asl.toml", "pyproject.toml")
_SETTINGS: Final[Mapping[str, tuple[type, str]]] = {
    "agents": (list, "an array of files"),
    "buckets": (dict, "a table of folders or URLs"),
    "profile": (str, "a name"),
    "request_link": (str, "a URL"),
    "serve": (dict, "a table of options of 'asl serve'"),
    "store": (str, "a file"),
    "variables": (dict, "a table of values"),
    "worker": (dict, "a table of options of 'asl worker'"),
}
_SERVICES: Final = ("serve", "worker")
"""Settings of single commands, which are checked when such a command is used."""


class Project(NamedTuple):
    """The settings of a project; paths are relative to the current folder."""

    file: str | None = None
    profile: str | None = None
    agents: tuple[str, ...] = ()
    store: str | None = None
    variables: Mapping[str, Json] = {}
    buckets: Mapping[str, str] = {}
    request_link: str | None = None
    services: Mapping[str, Json] = {}

    def options(self) -> dict[str, Any]:
        """Return the defaults of the options of all commands by parameter name."""
        found: dict[str, Any] = {
            "profile": self.profile,
            "agent_files": list(self.agents),
            "store_file": self.store,
            "request_links": [self.request_link] if self.request_link else [],
            "bucket_pairs": [f"{name}={place}" for name, place in self.buckets.items()],
        }
        return {name: value for name, value in found.items() if value}

    def options_of(self, command: str) -> dict[str, Any]:
        """Return the defaults of the options of a command by parameter name.

        Raises:
            AslError: A setting of the command is unknown or wrong, or a package is missing.
        """
        if command not in self.services or self.file is None:
            return self.options()
        require_extra("pydantic", "server", f"the table {command!r} of {self.file}")
        from asl.cli.service_settings import read_section

        folder = os.path.dirname(self.file)
        own = read_section(self.file, command, self.services[command], partial(_place, folder))
        return self.options() | own


def find_project(folder: str = ".") -> Project:
    """Return the settings for a folder; empty settings if there is no file.

    Raises:
        AslError: A file is not TOML, or a setting is unknown or invalid.
    """
    here = os.path.realpath(folder)
    while True:
        for name in FILES:
            file = os.path.join(here, name)
            if os.path.isfile(file):
                settings = _settings(file)
                if settings is not None:
                    return _project(os.path.relpath(file), settings)
        parent = os.path.dirname(here)
        if parent == here or os.path.exists(os.path.join(here, ".git")):
            return Project()
        here = parent


def is_from_project(parameter: str) -> bool:
    """Return whether the value of an option comes from the project, not from the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.DEFAULT_MAP


def _settings(file: str) -> Mapping[str, Any] | None:
    """Return the settings in a file; None if it has none."""
    with open(file, "rb") as opened:
        raw = opened.read()
    own = os.path.basename(file) == "asl.toml"
    if not own and b"tool.asl" not in raw:
        return None
    import tomllib

    try:
        value = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AslError(f"{os.path.relpath(file)} is not TOML: {error}") from None
    if own:
        return value
    found = value.get("tool", {}).get("asl")
    return found if isinstance(found, dict) else None


def _project(file: str, settings: Mapping[str, Any]) -> Project:
    for name, value in settings.items():
        if name not in _SETTINGS:
            hint = did_you_mean(name, _SETTINGS) or f"the settings are {', '.join(_SETTINGS)}"
            raise AslError(f"{file}: there is no setting {name!r} ({hint})")
        kind, form = _SETTINGS[name]
        texts = value.values() if name == "buckets" and isinstance(value, dict) else value
        wants_texts = name in ("agents", "buckets")
        if not isinstance(value, kind) or (
            wants_texts and not all(isinstance(each, str) for each in texts)
        ):
            raise AslError(f"{file}: {name!r} must be {form}")
        if name not in ("variables", *_SERVICES) and not all(map(is_printable, _texts(value))):
            raise AslError(f"{file}: {name!r} contains control characters")
    folder = os.path.dirname(file)

    place = partial(_place, folder)
    store = settings.get("store")
    return Project(
        file,
        settings.get("profile"),
        tuple(map(place, settings.get("agents", ()))),
        None if store is None else place(store),
        settings.get("variables", {}),
        {name: place(path) for name, path in settings.get("buckets", {}).items()},
        settings.get("request_link"),
        {name: settings[name] for name in _SERVICES if name in settings},
    )


def _place(folder: str, path: str) -> str:
    """Return a path of a file in a folder; URLs stay."""
    return path if "://" in path else os.path.join(folder, path)


def _texts(value: Any) -> list[str]:
    """Return the texts of a setting: help and messages print them."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return [value] if isinstance(value, str) else [*value]
