"""The cases that ship with the library, each file read once for all processes of a run of pytest.

To read them takes longer than to run them.
"""

import fcntl
import os
import pickle
from functools import cache
from pathlib import Path

from asl.conformance import Case, load_suite
from asl.conformance.case import find_suites
from asl.core.resources import folder

FOLDER = folder("conformance")
SHARED = "ASL_TESTS_SHARED"
"""The environment variable that names a folder of the run; without it each process reads all."""


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
    kept = Path(os.environ[SHARED]) / "-".join(file.relative_to(FOLDER).parts)
    with open(kept, "a+b") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        if read := shared.read():
            cases: list[Case] = pickle.loads(read)
            return cases
        cases = load_suite(file)
        shared.write(pickle.dumps(cases))
        return cases
