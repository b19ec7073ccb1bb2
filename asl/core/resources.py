"""Where the data folders of this project are: inside a wheel, or beside the package."""

from pathlib import Path
from typing import Literal

from asl.core.errors import AslError

__all__ = ["folder"]

_PACKAGE = Path(__file__).resolve().parents[1]
_BESIDE = {"schemas": "schemas", "conformance": "conformance", "examples": "docs/examples"}
"""Where each folder is in a checkout."""


def folder(name: Literal["schemas", "conformance", "examples"]) -> Path:
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
