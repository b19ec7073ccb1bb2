"""The cases that ship with the library, each file parsed once and then read from a cache.

Parsing them takes longer than running them.
"""

import fcntl
import os
import pickle
from functools import cache
from hashlib import sha256
from pathlib import Path

import asl
from asl.conformance import Case, load_suite
from asl.conformance.case import find_suites
from asl.core.environment import data_folder

FOLDER = data_folder("conformance")
SHARED = "ASL_TESTS_SHARED"
"""The environment variable that names the folder of the cache; without it there is none."""

READERS = (
    *("conformance", "compose", "core"),
    *("agents/file.py", "agents/scripted.py", "expr/times.py"),
)
"""The modules of the package that decide what a suite is read as."""


def bundled(under: str = "", each: int = 1) -> list[Case]:
    """Return the cases of a file or folder below conformance/, of one of so many files in it."""
    files = find_suites(FOLDER / under)[::each]
    # Every second process begins at the end, so that two do not wait for each other at each file.
    backwards = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"
    cases = {file: _read(file) for file in (reversed(files) if backwards else files)}
    return [case for file in files for case in cases[file]]


@cache
def _read(file: Path) -> list[Case]:
    if SHARED not in os.environ:
        return load_suite(file)
    cached = Path(os.environ[SHARED]) / "-".join(file.relative_to(FOLDER).parts)
    key = sha256(_readers() + file.read_bytes()).digest()
    with open(cached, "a+b") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        if shared.read(len(key)) == key:
            cases: list[Case] = pickle.loads(shared.read())
            return cases
        cases = load_suite(file)
        shared.truncate(0)
        shared.write(key + pickle.dumps(cases))
        return cases


@cache
def _readers() -> bytes:
    """Return a digest of all that a suite is read by, and of the documents beside the suites."""
    package = Path(asl.__file__).parent
    paths = [package / name for name in READERS]
    files = [path for each in paths for path in ([each] if each.is_file() else each.rglob("*.py"))]
    files += FOLDER.rglob("*.json")
    return sha256(b"".join(sha256(file.read_bytes()).digest() for file in sorted(files))).digest()
