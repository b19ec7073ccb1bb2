"""The installation: optional libraries, data folders and the running event loop."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from asl.core.errors import AslError

__all__ = [
    "data_folder",
    "has_running_loop",
    "install_command",
    "require_extra",
    "require_posix",
    "user_name",
]


def require_extra(module: str, extra: str, what: str) -> None:
    """Raise AslError with the install command unless a module of an optional extra is installed.

    Args:
        module: The module to look for.
        extra: The extra that installs it.
        what: The feature that needs it, for the message.
    """
    if find_spec(module) is None:
        raise AslError(f"{what} needs {module!r}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the checkout if there is one."""
    checkout = Path(__file__).parents[2]
    package = "." if (checkout / "pyproject.toml").is_file() else "agent-state-language"
    return f"pip install '{package}[{extra}]'"


def require_posix(what: str) -> None:
    """Raise AslError on Windows, for a feature that needs process groups of POSIX.

    Args:
        what: The feature, as the subject of the message.
    """
    if os.name != "posix":
        raise AslError(f"{what} needs a POSIX system: use WSL or a container")


def has_running_loop() -> bool:
    """Return whether an event loop is running in this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def user_name() -> str:
    """Return the name of the user of the operating system; `user` if unknown."""
    from getpass import getuser

    try:
        return getuser()
    except (ImportError, KeyError, OSError):  # Windows has no `pwd`
        return "user"


_PACKAGE = Path(__file__).resolve().parents[1]
_BESIDE = {"schemas": "schemas", "conformance": "conformance", "examples": "docs/examples"}
"""Where each folder is in a checkout."""


def data_folder(name: Literal["schemas", "conformance", "examples"]) -> Path:
    """Return a data folder of the installation.

    A wheel holds it as `asl/data/<name>`; in a checkout it is a sibling of the package.

    Raises:
        AslError: The folder is missing.
    """
    places = (_PACKAGE / "data" / name, _PACKAGE.parent / _BESIDE[name])
    for place in places:
        if place.is_dir():
            return place
    raise AslError(
        f"the {name!r} folder is missing: neither {places[0]} nor {places[1]} exists; "
        "the installation is incomplete"
    )
