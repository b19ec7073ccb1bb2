"""The data folders are found wherever the package is installed."""

from pathlib import Path
from typing import Literal

import pytest

from asl.core import environment
from asl.core.errors import AslError

Name = Literal["schemas", "conformance"]


@pytest.mark.parametrize("name", ["schemas", "conformance"])
def test_a_checkout_has_its_folders_beside_the_package(name: Name) -> None:
    """They are the ones of this repository."""
    assert environment.data_folder(name) == Path(__file__).resolve().parents[2] / name


@pytest.mark.parametrize("name", ["schemas", "conformance"])
def test_a_wheel_holds_them_inside_the_package(
    name: Name, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`asl/data/<name>` wins over a folder that happens to stand beside the package."""
    inside, beside = tmp_path / "asl" / "data" / name, tmp_path / name
    inside.mkdir(parents=True)
    beside.mkdir()
    monkeypatch.setattr(environment, "_PACKAGE", tmp_path / "asl")
    assert environment.data_folder(name) == inside


def test_a_missing_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is missing and where it was looked for."""
    monkeypatch.setattr(environment, "_PACKAGE", tmp_path / "asl")
    with pytest.raises(AslError, match="'schemas' folder is missing"):
        environment.data_folder("schemas")
