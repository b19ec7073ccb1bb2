"""The interpreters that are compared, each behind a command of the protocol."""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import asl

__all__ = ["OURS", "Peer", "installed"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODULES = ROOT / "build" / "peers" / "node_modules"
OURS = "asl"


@dataclass(frozen=True)
class Peer:
    """An interpreter.

    Attributes:
        name: Its name on the page.
        version: The version that is installed, with that of its runtime.
        command: Starts its adapter.
        unclaimed: Features that its documentation does not claim; their cases are not asked.
        claims: Where its documentation says what it supports.
    """

    name: str
    version: str
    command: tuple[str, ...]
    unclaimed: frozenset[str] = frozenset()
    claims: str = ""


def installed() -> Iterator[Peer]:
    """Yield this project and the other interpreters that are installed here."""
    python = f"CPython {platform.python_version()}"
    yield Peer(
        OURS,
        f"{asl.__version__}, {python}",
        (sys.executable, "-m", "asl.conformance.local"),
    )
    with suppress(PackageNotFoundError):
        yield Peer(
            "moto",
            f"{version('moto')}, {python}",
            (sys.executable, "-m", "conformance.peers.moto_adapter"),
            unclaimed=frozenset({"JSONata", "Variables"}),
            claims="`execute_state_machine` of its page on Step Functions; it ships without the "
            "evaluator of JSONata, through which it also reads variables",
        )
    package, node = MODULES / "aws-local-stepfunctions" / "package.json", _node()
    if package.is_file() and node:
        number = json.loads(package.read_text(encoding="utf-8"))["version"]
        yield Peer(
            "aws-local-stepfunctions",
            f"{number}, Node.js {_version(node)}",
            (node, str(HERE / "local_stepfunctions.mjs"), str(MODULES.parent)),
            unclaimed=frozenset(
                {
                    *("Credentials", "Distributed Map", "Heartbeats", "ItemBatcher"),
                    *(
                        "ItemReader",
                        "JSONata",
                        "ResultWriter",
                        "Validation of service integrations",
                    ),
                    *("Tolerated failures", "Variables"),
                }
            ),
            claims="its page on feature support: JSONPath; no `QueryLanguage`, no `Assign`",
        )


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip().removeprefix("v")


def _node() -> str | None:
    """Return the Node.js beside the packages, else that of the system."""
    own = MODULES / ".bin" / "node"
    return str(own) if own.exists() else shutil.which("node")
