"""Jayway JsonPath 2.0.0 as an oracle, and the table of its recorded answers.

`pairs.json` holds documents and the paths that are read in them: every form of the syntax on
values of each kind. `python -m tests.expr.paths.oracle` records the table anew. It needs a JRE from
version 11 on and the jars of the Debian package `libjsonpath-java` (2.0.0): `apt install
default-jre-headless libjsonpath-java`. The table itself needs neither.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAIRS = HERE / "pairs.json"
TABLE = HERE / "jayway.jsonl"
JARS = Path("/usr/share/java")
NAMES = ("json-path-2.0.0", "json-smart", "accessors-smart", "asm", "slf4j-api", "slf4j-nop")


@cache
def available() -> bool:
    """Whether this machine has the engine."""
    return bool(shutil.which("java")) and all((JARS / f"{name}.jar").exists() for name in NAMES)


class Oracle:
    """The engine as a running process; use it as a context manager."""

    def __enter__(self) -> "Oracle":
        jars = ":".join(str(JARS / f"{name}.jar") for name in NAMES)
        self.process = subprocess.Popen(
            ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", jars, HERE / "Oracle.java"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.communicate()

    def __call__(self, path: str, document: Any) -> Any:
        """Return what the engine answers."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"path": path, "document": document}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def recorded() -> Iterator[Any]:
    """Yield the rows of the table: a path, a document and the answer of the engine."""
    groups = json.loads(PAIRS.read_text(encoding="utf-8"))
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield {**row, "document": groups[row["document"]]["document"]}


def record() -> None:
    """Write the table."""
    with Oracle() as ask, TABLE.open("w", encoding="utf-8") as out:
        for name, group in json.loads(PAIRS.read_text(encoding="utf-8")).items():
            for path in group["paths"]:
                row = {"path": path, "document": name, **ask(path, group["document"])}
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    record()
