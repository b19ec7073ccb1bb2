"""Where imported documents may come from, and which versions a source admits."""

import json
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.compose.lock import parse_registry_source

pytestmark = pytest.mark.quick

PART = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": "part", "End": True}}}


def importing(source: str) -> dict[str, Any]:
    return {
        "Imports": {"part": source},
        "StartAt": "A",
        "States": {"A": {"Type": "Include", "Template": "part", "End": True}},
    }


def written(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def faults(document: Any, **options: Any) -> list[tuple[str, str, str | None]]:
    report = asl.check(asl.load(document, **options))
    return [(each.code, each.message, each.hint) for each in report]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `home` with the document, and a part outside of it."""
    written(tmp_path / "part.asl.json", PART)
    (tmp_path / "home").mkdir()
    return tmp_path


def test_files_below_the_folder_of_the_document_are_read(folder: Path) -> None:
    """Wherever the process is."""
    main = written(folder / "home" / "main.asl.json", importing("sub/part.asl.json"))
    written(folder / "home" / "sub" / "part.asl.json", PART)
    assert asl.run(main).output == "part"


@pytest.mark.parametrize("way", ["../part.asl.json", "sub/../../part.asl.json", "link.asl.json",
                                 "linked/part.asl.json"])  # fmt: skip
def test_nothing_outside_is_read(folder: Path, way: str) -> None:
    """Not by a path upwards, and not by a link."""
    home = folder / "home"
    (home / "sub").mkdir()
    (home / "link.asl.json").symlink_to(folder / "part.asl.json")
    (home / "linked").symlink_to(folder, target_is_directory=True)
    main = written(home / "main.asl.json", importing(way))
    ((code, message, hint),) = faults(main)
    assert code == "V-IMP-01"
    assert "leads out of" in message
    assert hint is not None
    assert "--root" in hint
    assert asl.run(asl.load(main, root=folder)).output == "part"


def test_an_absolute_path_needs_a_root(folder: Path) -> None:
    """Even one that leads below the folder of the document."""
    part = written(folder / "home" / "part.asl.json", PART)
    main = written(folder / "home" / "main.asl.json", importing(str(part)))
    ((code, message, _),) = faults(main)
    assert (code, "absolute" in message) == ("V-IMP-01", True)
    assert asl.run(asl.load(main, root=folder / "home")).output == "part"
    assert faults(main, root=folder / "home" / "other")[0][0] == "V-IMP-01"


def test_a_folder_is_no_file(folder: Path) -> None:
    """Nor is anything else that is no plain file."""
    main = written(folder / "home" / "main.asl.json", importing("."))
    assert [code for code, *_ in faults(main)] == ["V-IMP-01"]


def test_a_document_that_is_no_file_imports_none(folder: Path) -> None:
    """Unless it is said where they lie."""
    ((code, _, hint),) = faults(importing("part.asl.json"))
    assert code == "V-IMP-01"
    assert hint is not None
    assert "root=" in hint
    assert asl.run(asl.load(importing("part.asl.json"), root=folder)).output == "part"


@pytest.mark.parametrize("source", ["https://example.com/part.json", "registry://acme/part@1.0.0"])
def test_other_sources_are_what_the_host_makes_of_them(source: str) -> None:
    """A function or a mapping; without one nothing is fetched."""
    lock = {"_lock": {"part": source}}
    assert any("is not read" in message for _, message, _ in faults({**importing(source), **lock}))
    asked = []

    def fetch(wanted: str) -> Any:
        asked.append(wanted)
        return PART

    for imports in (fetch, {source: PART}):
        assert asl.run(asl.load({**importing(source), **lock}, imports=imports)).output == "part"
    assert asked == [source]
    ((code, message, _),) = faults({**importing(source), **lock}, imports={})
    assert (code, "cannot be fetched" in message) == ("V-IMP-01", True)


def test_the_lock_says_which_version_is_read() -> None:
    """It wins over the constraint."""
    document = {
        **importing("registry://acme/part@^1.0.0"),
        "_lock": {"part": "registry://acme/part@1.4.0"},
    }
    versions = {"registry://acme/part@1.4.0": PART}
    assert asl.run(asl.load(document, imports=versions)).output == "part"


@pytest.mark.parametrize(
    ("wanted", "version", "admitted"),
    [
        ("1.2.0", "1.2.0", True),
        ("1.2.0", "1.2.1", False),
        ("^1.2.0", "1.9.9", True),
        ("^1.2.0", "1.1.9", False),
        ("^1.2.0", "2.0.0", False),
        ("^0.2.3", "0.2.9", True),
        ("^0.2.3", "0.3.0", False),
        ("^0.0.3", "0.0.3", True),
        ("^0.0.3", "0.0.4", False),
        ("~1.2.0", "1.2.9", True),
        ("~1.2.0", "1.3.0", False),
        (">=1.2.0", "9.0.0", True),
        (">=1.2.0", "1.1.9", False),
        ("latest", "0.0.1", True),
        ("1.2.0-rc.1", "1.2.0-rc.1", True),
        ("1.2.0-rc.1", "1.2.0", False),
        ("^1.2.0", "1.3.0-rc.1", False),
    ],
)
def test_which_versions_a_constraint_admits(wanted: str, version: str, admitted: bool) -> None:
    """By the rules that package managers share; a tagged version only stands for itself."""
    constraint = parse_registry_source(f"registry://acme/part@{wanted}")
    exact = parse_registry_source(f"registry://acme/part@{version}")
    other = parse_registry_source(f"registry://acme/other@{version}")
    assert constraint is not None
    assert exact is not None
    assert other is not None
    assert constraint.admits(exact) is admitted
    assert not constraint.admits(other)


@pytest.mark.parametrize(
    "source", ["registry://part@1.2.0", "registry://acme/part@1.2", "registry://acme/part@*",
               "registry:acme/part@1.2.0", "registry://acme/part@==1.2.0"]
)  # fmt: skip
def test_malformed_sources_of_a_registry(source: str) -> None:
    """They name nothing."""
    assert parse_registry_source(source) is None


def test_imports_are_nested_sixteen_deep(folder: Path) -> None:
    """One more is refused, with its place."""
    home = folder / "home"
    for number in range(20):
        written(home / f"{number}.asl.json", importing(f"{number + 1}.asl.json"))
    written(home / "20.asl.json", PART)
    found = {each.code: each for each in asl.check(home / "0.asl.json")}
    assert "16 deep" in found["V-IMP-01"].message
    assert "Workflow" in (found["V-IMP-01"].hint or "")
    assert asl.run(home / "6.asl.json").output == "part"
