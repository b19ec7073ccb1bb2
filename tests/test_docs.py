"""The documentation holds: its code runs, its output is exact, its links lead somewhere.

Each page is one story: its blocks run in order, in a copy of the repository's documentation.

* ```python blocks share one namespace; what they try must raise;
* ```console blocks run their `$ ...` lines in a shell and compare what appears; `...` stands for
  anything in its line, and a line `...` for any number of lines;
* ```json and ```yaml blocks parse; with a name (```json hello.asl.json) they are saved under it for
  the blocks that follow;
* ```text is prose. ```sh is allowed in the README only, where the gate runs it.
"""

import ast
import json
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asl.core.document import read_value
from tests.markdown import blocks, check_console, prose, shows, write_programs

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "conformance" / "README.md",
        ROOT / "schemas" / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")),
    )
}
RULES = runpy.run_path(str(Path(__file__).with_name("rules_page.py")))
LANGUAGES = {"python", "console", "json", "yaml", "text", "sh"}
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:asl|docs|examples|tests|schemas|conformance|benchmarks)/[\w./-]+)`")

every_page = pytest.mark.parametrize("page", PAGES)


# Form --------------------------------------------------------------------------------------------


@every_page
def test_every_block_says_what_it_is(page: str) -> None:
    """A block is run, parsed or marked as prose; nothing is skipped in silence."""
    for block in blocks(PAGES[page]):
        assert block.language in LANGUAGES, f"{page}:{block.line}: ```{block.language}"
        assert block.language != "sh" or page == "README.md", f"{page}:{block.line}"


@every_page
def test_data_parses(page: str) -> None:
    """Each block of JSON or YAML is one value, or one to a line."""
    for block in blocks(PAGES[page]):
        if block.language == "yaml":
            read_value(block.text.encode(), format="yaml")
        elif block.language == "json":
            try:
                json.loads(block.text)
            except json.JSONDecodeError:
                for line in block.text.splitlines():
                    json.loads(line)


@every_page
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link names a file, and a heading of that file if it names one."""
    for target in LINK.findall(prose(PAGES[page])):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        path = (PAGES[page].parent / name).resolve() if name else PAGES[page]
        assert path.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{page}: {target}"


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as they are made from their texts."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@every_page
def test_paths_exist(page: str) -> None:
    """A file or folder of the project that a page mentions is there."""
    for path in PATH.findall(prose(PAGES[page])):
        assert (ROOT / path).exists(), f"{page}: {path}"


@every_page
def test_pages_are_reachable(page: str) -> None:
    """Every page of the documentation is linked from another."""
    linked = {
        (PAGES[other].parent / target.partition("#")[0]).resolve()
        for other in PAGES
        if other != page
        for target in LINK.findall(prose(PAGES[other]))
        if not target.startswith("#")
    }
    here = PAGES[page].resolve()
    assert page == "README.md" or here in linked or here.parent in linked


INWARD = {
    *("init", "execution", "records", "origin", "end_details", "ended", "id", "name"),
    *("value", "waits"),
}
"""Members of a result that other parts of the package read, or that say nothing more."""


def test_the_page_of_the_api_leaves_nothing_out() -> None:
    """Every name of the front door, argument of a run and member of its result stands there."""
    import inspect

    import asl
    from asl.engine.result import Result

    page = PAGES["docs/python.md"].read_text(encoding="utf-8")
    names = [name for name in asl.__all__ if f"`{name}`" not in page]
    assert [name for name in names if not re.search(rf"asl\.{name}\b", page)] == []
    for argument in {*inspect.signature(asl.run).parameters} - {"workflow"}:
        assert f"| `{argument}` |" in page, argument
    for member in {name for name in dir(Result) if not name.startswith("_")} - INWARD:
        assert re.search(rf"`{member}(\(\))?`", page), member


@pytest.mark.parametrize("name", RULES["PAGES"])
def test_pages_that_are_made_are_current(name: str) -> None:
    """They are what the catalogue gives; `python -m tests.rules_page` rewrites them."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == RULES["PAGES"][name]()


# Running -----------------------------------------------------------------------------------------


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the documentation, with the command `asl` on the path and no modules of others."""
    place = tmp_path / "project"
    shutil.copytree(ROOT / "docs", place / "docs")
    for folder in ("conformance", "schemas"):
        (place / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("PATH", write_programs(tmp_path / "bin"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield place
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(place)):
            del sys.modules[name]


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("examples/")])
def test_blocks_run(page: str, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of Python runs, and every command prints what the page says."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(PAGES[page]):
        where = f"{page}:{block.line}"
        if block.name is not None:
            target = workplace / block.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, target.stem, raising=False)
        elif block.language == "python":
            lines = "\n" * (block.line - 1) + block.text
            tree = ast.parse(lines, str(PAGES[page]))
            for tried in (each for each in tree.body if isinstance(each, ast.Try)):
                tried.orelse += ast.parse("raise AssertionError('nothing was raised')").body
            code = compile(ast.fix_missing_locations(tree), str(PAGES[page]), "exec")
            exec(code, namespace)
        elif block.language == "console":
            check_console(block, where)


def test_shows_is_exact() -> None:
    """The comparison of output lets nothing through but what `...` stands for."""
    assert shows("a\n...\nc\n", "a\nb\nb\nc\n")
    assert shows("a\n\n", "a\n")
    assert shows("a in ... s\n", "a in 0.1 s\n")
    assert not shows("a\n", "a\nb\n")
    assert not shows("a\nb\n", "a\n")
    assert not shows("a.c\n", "abc\n")


NAMED_FILE = re.compile(r"`((?:asl|tests|schemas|docs|benchmarks)/[\w./-]*)`")
NAMED_MODULE = re.compile(r"`(asl(?:\.\w+)+)(?:\(\))?`")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *(p for p in PAGES if "notes/" in p)])
def test_named_files_and_modules_exist(page: str) -> None:
    """Each file, module and name of a module in backticks, in the pages for contributors."""
    text = PAGES[page].read_text("utf-8")
    missing = [name for name in NAMED_FILE.findall(text) if not (ROOT / name).exists()]
    for name in NAMED_MODULE.findall(text):
        parts, module = name.split("."), ROOT
        while parts and (module / parts[0]).is_dir():
            module /= parts.pop(0)
        if parts and (module / f"{parts[0]}.py").exists():
            module /= f"{parts.pop(0)}.py"
        source = module if module.suffix else module / "__init__.py"
        if parts and not re.search(rf"\b{parts[0]}\b", source.read_text("utf-8")):
            missing.append(name)
    assert not missing
