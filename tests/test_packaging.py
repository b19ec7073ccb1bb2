"""What is installed is complete: as a wheel, from a checkout and as an editable install."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = {"StartAt": "Hi", "States": {"Hi": {"Type": "Pass", "Result": "hello", "End": True}}}
PROBE = """
import asl
from asl.conformance.case import find_suites, load_suite
from asl.core.environment import data_folder

assert any(data_folder("schemas").glob("states/Task.schema.json"))
suites = find_suites(data_folder("conformance"))
assert len(suites) > 100 and load_suite(suites[0])
assert not asl.check({"StartAt": "A", "States": {}}).ok
print(asl.__file__, data_folder("schemas"), data_folder("conformance"), sep="\\n")
"""


def run(folder: Path | None, *arguments: str, cwd: Path) -> str:
    """Run Python and return its output.

    With a folder, only that one and the dependencies are on its path; else what is installed.
    """
    others = [each for each in sys.path if each and Path(each) != ROOT]
    path = [] if folder is None else [str(folder), *others]
    done = subprocess.run(
        [sys.executable, *([] if folder is None else ["-S"]), *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def works(folder: Path | None, tmp_path: Path) -> tuple[Path, Path, Path]:
    """Check that the package runs a document; return where it, its schemas and its cases are."""
    document = tmp_path / "hello.asl.json"
    document.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    assert run(folder, "-m", "asl", "run", str(document), cwd=tmp_path) == '"hello"\n'
    package, schemas, conformance = run(folder, "-c", PROBE, cwd=tmp_path).splitlines()
    return Path(package).parent, Path(schemas), Path(conformance)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built from a copy of the tree."""
    pytest.importorskip("hatchling", reason="hatchling builds the wheel; it is in the dev extra")
    place = tmp_path_factory.mktemp("build")
    tree, out = place / "tree", place / "out"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "tests", "benchmarks")
    shutil.copytree(ROOT, tree, ignore=ignored)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=tree,
        capture_output=True,
        timeout=120,
        check=True,
    )
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_is_complete(wheel: Path, tmp_path: Path) -> None:
    """Unpacked from its wheel the package finds its data inside itself and runs a document."""
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    package, schemas, conformance = works(unpacked, tmp_path)
    assert package == unpacked / "asl"
    assert schemas == package / "data" / "schemas"
    assert conformance == package / "data" / "conformance"
    run(unpacked, "-m", "asl", "init", "--example", "goal", cwd=tmp_path)
    assert (tmp_path / "goal.asl.json").exists()


USER = """
import asl


def greet(parameters: dict[str, str], call: asl.Call) -> str:
    return f"Hello, {parameters['name']}!"


def told(event: asl.Event) -> None:
    print(event.id, event.type, event.path)


document: asl.Document = asl.load("hello.asl.json")
report: asl.Report = asl.check(document, agents=["Greeter"])
program: asl.Program = asl.compile(document)
result: asl.Result = asl.run(program, {"name": "Ada"}, agents={"Greeter": greet}, listener=told)
plan: asl.Plan = asl.plan(document)
found: asl.Difference = asl.diff(document, document)
with asl.open_store("runs.db") as store:
    kept: asl.Result = store.run(program, {"name": "Bob"}, agents={"Greeter": greet})
"""
WRONG = """
asl.rum(program)
asl.run(program, clok="virtual")
asl.run(program, agents=5)
result.ouput
"""


@pytest.mark.full
def test_programs_of_users_are_checked_by_the_types_of_the_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    """A sound one passes; a misspelt name, argument or member, or a wrong type, is found."""
    pytest.importorskip("mypy", reason="mypy checks it; it is in the dev extra")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    user = tmp_path / "user.py"
    user.write_text(USER + WRONG, encoding="utf-8")
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--config-file="]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(user)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tmp_path / "unpacked")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    first = USER.count("\n") + 2
    assert lines == [str(first + each) for each in range(4)], done.stdout


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    """The wheel has its license, its types, its command and its pytest plugin, and no tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        points = archive.read(next(each for each in names if each.endswith("entry_points.txt")))
    assert "asl/py.typed" in names
    assert any(each.endswith("licenses/LICENSE") for each in names)
    assert b"asl = asl.cli.main:main" in points
    assert b"asl = asl.conformance.plugin" in points
    assert {each.split("/")[0].split("-")[0] for each in names} == {"asl", "agent_state_language"}


def test_the_wheel_has_every_file(wheel: Path) -> None:
    """Every module, schema, case and example of the checkout is in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {each.relative_to(ROOT).as_posix() for each in (ROOT / "asl").rglob("*.py")}
    data = {
        f"asl/data/{each.relative_to(ROOT).as_posix().removeprefix('docs/')}"
        for folder in ("schemas", "conformance", "docs/examples")
        for each in (ROOT / folder).rglob("*")
        if each.is_file() and each.parent.name != "__pycache__"
    }
    assert (modules | data) - names == set()


def test_a_checkout_works(tmp_path: Path) -> None:
    """From a checkout the package finds the folders beside it."""
    package, schemas, conformance = works(ROOT, tmp_path)
    assert (package, schemas, conformance) == (ROOT / "asl", ROOT / "schemas", ROOT / "conformance")


def test_an_editable_install_works(tmp_path: Path) -> None:
    """An editable install finds the folders of its checkout."""
    try:
        origin = distribution("agent-state-language").read_text("direct_url.json")
    except PackageNotFoundError:
        pytest.skip("the package is not installed in this environment")
    if not (origin and json.loads(origin).get("dir_info", {}).get("editable")):
        pytest.skip("the package is installed here, but not as an editable install")
    package, schemas, _ = works(None, tmp_path)
    assert schemas == package.parent / "schemas"


def test_the_lock_pins_every_development_dependency() -> None:
    """With a hash each; `.ci/lock` writes it anew."""
    lines = (ROOT / ".ci" / "dev.lock").read_text().splitlines()
    pinned = {re.split("==", line)[0].lower().replace("_", "-") for line in lines}
    assert all("--hash=sha256:" in line for line in lines if not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for needed in (*project["dependencies"], *project["optional-dependencies"]["dev"]):
        name = re.split(r"[\[<>=;]", needed)[0].lower().replace("_", "-")
        assert name in pinned, f"{name} is not in .ci/dev.lock"


def test_dependencies_of_the_core_have_ceilings() -> None:
    """A new major version of a dependency breaks nobody who installs the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [each for each in project["dependencies"] if "<" not in each] == []


def needs(name: str, extra: str = "") -> set[str]:
    """Return the names of a distribution and of all that it depends on in this environment."""
    todo, found = [(name, extra)], set()
    while todo:
        each, extra = todo.pop()
        found.add(canonicalize_name(each))
        for line in distribution(each).requires or ():
            requirement = Requirement(line)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
            if wanted and canonicalize_name(requirement.name) not in found:
                todo.append((requirement.name, ",".join(requirement.extras)))
    return found


def test_the_core_has_at_most_ten_dependencies_and_thirty_megabytes(wheel: Path) -> None:
    """`pip install .` brings few distributions, all with wheels, also for musl."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = [Requirement(each).name for each in project["dependencies"]]
    names = set().union(*map(needs, direct))
    assert "google-re2" not in names
    assert len(names) <= 10, sorted(names)
    installed = sum(
        Path(str(file.locate())).stat().st_size
        for name in names
        for file in distribution(name).files or ()
        if Path(str(file.locate())).is_file()
    )
    with zipfile.ZipFile(wheel) as archive:
        unpacked = sum(each.file_size for each in archive.infolist())
    assert installed + unpacked < 30_000_000
