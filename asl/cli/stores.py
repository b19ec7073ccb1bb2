"""The store that commands look at, and how an execution in it is found."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError

if TYPE_CHECKING:
    from asl.executions import Store
    from asl.stores.sqlite import Stored

__all__ = ["STORE", "default_store", "found", "opened"]

STORE = click.option(
    "--store",
    "store_file",
    metavar="FILE",
    envvar="ASL_STORE",
    help="The store of executions; by default asl/runs.db in the user's state folder.",
)


def default_store() -> Path:
    """Return the store that is used where none is named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "asl" / "runs.db"


def opened(file: str | None, *, make: bool = False) -> "Store":
    """Open a store; one that is not there is made only if *make* says so."""
    from asl.executions import Store

    path = default_store() if file is None else Path(file)
    if not path.exists():
        if not make:
            raise AslError(f"there is no store {path}: 'asl run DOC --store FILE' makes one")
        path.parent.mkdir(parents=True, exist_ok=True)
    return Store(path)


def found(store: "Store", name: str) -> "Stored":
    """Return an execution by its name or its id."""
    from asl.executions import ExecutionNotFound

    try:
        return store.get(name)
    except ExecutionNotFound as error:
        hint = did_you_mean(name, [each.name for each in store.executions(limit=1000)])
        raise AslError(f"{error} ({hint})" if hint else f"{error} ('asl ls' lists them)") from None
