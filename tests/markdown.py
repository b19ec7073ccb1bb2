"""The code blocks of a page: what they are, and whether their commands print what they show."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^( *)```(.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the name to save it under, its text, and its first line."""

    language: str
    name: str | None
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    opened: tuple[str, str, int] | None = None
    body: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence is not None:
            opened, body = (fence[1], fence[2], number + 1), []
        elif opened is not None and fence is not None and not fence[2]:
            language, _, name = opened[1].partition(" ")
            yield Block(language, name or None, "\n".join(body) + "\n", opened[2])
            opened = None
        elif opened is not None:
            body.append(line.removeprefix(opened[0]))
    assert opened is None, f"{page}:{opened[2] if opened else 0}: the block is never closed"


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def write_programs(folder: Path) -> str:
    """Write the commands `asl` and `python` into a folder and return a PATH that starts with it."""
    folder.mkdir()
    for name, arguments in (("asl", "-m asl"), ("python", "")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block, each with the output that it shows."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"line {block.line}: a console block begins with a command"
    for part in parts[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.removeprefix("> ").strip()
        yield command, expected


def check_console(block: Block, where: str) -> None:
    """Run the commands of a block one after the other and compare their output."""
    code = 0
    for command, expected in commands(block):
        done = subprocess.run(
            ["sh", "-c", f"(exit {code})\n{command}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=120,
            check=False,
        )
        code = done.returncode
        assert shows(expected, done.stdout), f"{where}: $ {command}\n{done.stdout}"


def shows(expected: str, found: str) -> bool:
    """Whether the output is what a page shows, apart from what `...` stands for."""
    lines = [
        "(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + "\n"
        for line in expected.rstrip().splitlines()
    ]
    shown = "".join(line.rstrip() + "\n" for line in found.rstrip().splitlines())
    return re.fullmatch("".join(lines), shown) is not None
