"""The files of the playground: its page, Pyodide, and the interpreter with its libraries."""

import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

__all__ = ["ARCHIVE", "MARK", "PYODIDE", "app", "playground_files", "python_archive"]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).with_name("playground")
PYODIDE = ROOT / "build" / "js" / "node_modules" / "pyodide"
"""The npm package `pyodide`, if it is installed."""
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
RUNTIME_LOCK = "pyodide-lock.json"
LIBRARIES = (
    *("attrs", "jsonata-python", "jsonschema", "jsonschema-specifications", "referencing"),
    "ruamel.yaml",
)
LEFT_OUT = ("server", "temporal", "aws", "editor", "cli", "service", "functions")
"""Parts of the package that no browser can run."""
MARK = "<!-- playground -->"
"""The place of the playground on its page."""
ARCHIVE = "assets/playground/python.zip"


def app() -> str:
    """Return the HTML of the playground, or a note if Pyodide is not installed."""
    if not PYODIDE.is_dir():
        return "This site was built without Pyodide, so the playground is not part of it."
    return (SOURCES / "playground.html").read_text(encoding="utf-8")


def playground_files() -> Iterator[tuple[str, Path]]:
    """Yield place and path of each file of the playground that is copied; none without Pyodide."""
    if PYODIDE.is_dir():
        for name in (*RUNTIME, RUNTIME_LOCK):
            yield f"assets/pyodide/{name}", PYODIDE / name
        for name in ("playground.js", "worker.js"):
            yield f"assets/playground/{name}", SOURCES / name


def python_archive() -> bytes:
    """Return a ZIP archive with the interpreter and its libraries, without compiled modules."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_python_files()):
            archive.write(path, name)
    return written.getvalue()


def _python_files() -> Iterator[tuple[str, Path]]:
    """Yield name and path of each file of the archive."""
    for path in SOURCES.glob("*.py"):
        yield path.name, path
    for path in (ROOT / "asl").rglob("*"):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and "__pycache__" not in parts and parts[1] not in LEFT_OUT:
            yield "/".join(parts), path
    for path in (ROOT / "schemas").rglob("*.json"):
        yield f"asl/data/{path.relative_to(ROOT).as_posix()}", path
    for library in LIBRARIES:
        for file in distribution(library).files or ():
            if file.suffix in (".py", ".json") and ".." not in file.parts:
                yield file.as_posix(), Path(str(file.locate()))
