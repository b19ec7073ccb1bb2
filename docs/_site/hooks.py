"""The hooks of MkDocs: pages from outside `docs`, the generated reference, links and versions."""

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from playground_assets import ARCHIVE, MARK, PYODIDE, app, playground_files, python_archive
from reference import reference_pages

ROOT = Path(__file__).resolve().parents[2]
MOVED = {"README.md": "index.md", "docs/README.md": "contents.md"}
"""Places on the site of pages that are not where they are in the project, or below `docs`."""
SOURCES = {place: source for source, place in MOVED.items()}

FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
NAMED_FENCE = re.compile(r"^( *```\w+) (\S+)$", re.MULTILINE)
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation, and add to a site of mike the selector of versions."""
    examples = sorted(ROOT.glob("examples/**/README.md"))
    pages = (path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md"))
    unlisted = sorted({*pages} - {*listed_pages(config.nav)} - {"README.md"})
    config.nav.insert(2, {"Examples": [each.relative_to(ROOT).as_posix() for each in examples]})
    if unlisted:
        config.nav.append({"More": unlisted})
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def listed_pages(navigation: Any) -> Iterator[str]:
    """Yield the pages in a part of the navigation."""
    if isinstance(navigation, str):
        yield navigation
    else:
        parts = navigation.values() if isinstance(navigation, dict) else navigation
        for part in parts:
            yield from listed_pages(part)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files outside `docs` that pages link to, the reference, the playground."""
    files.remove(files.src_uris["README.md"])
    pages = (f"docs/{each.src_uri}" for each in files.documentation_pages())
    schemas = (path.relative_to(ROOT).as_posix() for path in ROOT.glob("schemas/**/*.schema.json"))
    copied = {place_on_site(each): str(ROOT / each) for each in {*outside({*pages}), *schemas}}
    copied |= {place: str(path) for place, path in playground_files()}
    for place, path in copied.items():
        files.append(File.generated(config, place, abs_src_path=path))
    if PYODIDE.is_dir():
        files.append(File.generated(config, ARCHIVE, content=python_archive()))
    for place, text in reference_pages():
        if place in files.src_uris:
            files.remove(files.src_uris[place])
        files.append(File.generated(config, place, content=text))
    return files


def outside(pages: set[str]) -> set[str]:
    """Return the files outside `docs` that pages link to, directly or by pages outside."""
    found = {*MOVED}
    todo = pages | found
    while todo:
        page = todo.pop()
        for link in LINK.finditer((ROOT / page).read_text(encoding="utf-8")):
            target = resolve_link(page, link[2])
            is_file = target not in found and (ROOT / target).is_file()
            if is_file and not target.startswith("docs/"):
                found.add(target)
                if target.endswith(".md"):
                    todo.add(target)
    return found


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt a page to the site, and insert the playground at its mark."""
    parts, end = [], 0
    for fence in FENCED.finditer(markdown):
        parts.append(site_prose(markdown[end : fence.start()], page.file.src_uri))
        parts.append(NAMED_FENCE.sub(r'\1 title="\2"', fence[0]))
        end = fence.end()
    text = "".join([*parts, site_prose(markdown[end:], page.file.src_uri)])
    return text.replace(MARK, app())


def site_prose(text: str, place: str) -> str:
    """Return text outside code as the site needs it."""
    return with_site_links(text, place).replace("\\<", "&lt;")  # Python-Markdown lacks this escape


def with_site_links(text: str, place: str) -> str:
    """Return the text of a page with links that are right on the site."""
    is_outside = (ROOT / place).is_file() and not (ROOT / "docs" / place).is_file()
    source = SOURCES.get(place, place if is_outside else f"docs/{place}")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups(default="")
        target = resolve_link(source, target)
        if (ROOT / target).is_dir():
            return text  # a folder without a page
        target = posixpath.relpath(place_on_site(target), posixpath.dirname(place) or ".")
        return f"[{text}]({target}{anchor})"

    return LINK.sub(link, text)


def resolve_link(source: str, link: str) -> str:
    """Return the path of the file that a link in a page names; of a folder it is its README."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    readme = f"{target}/README.md"
    return readme if (ROOT / readme).is_file() else target


def place_on_site(source: str) -> str:
    """Return the path on the site of a file of the project."""
    return MOVED.get(source, source.removeprefix("docs/"))
