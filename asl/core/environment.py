"""The installation: optional libraries, data folders and the running event loop."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from asl.core.errors import AslError

__all__ = ["data_folder", "has_running_loop", "install_command", "require_extra"]


def require_extra(module: str, extra: str, what: str) -> None:
    """Raise AslError, with the line that installs it, unless there is a module of an extra."""
    if find_spec(module) is None:
        raise AslError(f"{what} needs {module!r}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the checkout where asl runs from one."""
    checkout = Path(__file__).parents[2]
    package = "." if (checkout / "pyproject.toml").is_file() else "agent-state-language"
    return f"pip install '{package}[{extra}]'"


def has_running_loop() -> bool:
    """Whether an event loop is running in this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


_PACKAGE = Path(__file__).resolve().parents[1]
_BESIDE = {"schemas": "schemas", "conformance": "conformance", "examples": "docs/examples"}
"""Where each folder is in a checkout."""


def data_folder(name: Literal["schemas", "conformance", "examples"]) -> Path:
    """Return the folder of this name; raises AslError if the installation lacks it.

    A wheel holds it as `asl/data/<name>`; a checkout or an editable install has it beside the
    package.
    """
    places = (_PACKAGE / "data" / name, _PACKAGE.parent / _BESIDE[name])
    for place in places:
        if place.is_dir():
            return place
    raise AslError(
        f"the {name!r} folder is missing: neither {places[0]} nor {places[1]} exists; "
        "the installation is incomplete"
    )
