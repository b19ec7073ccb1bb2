"""The hooks of MkDocs: pages from outside `docs`, the generated reference, links and versions."""

import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from playground_assets import ARCHIVE, MARK, PYODIDE, app, playground_files, python_archive
from reference import reference_pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "index.md": "README.md",
    "contents.md": "docs/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    **{
        f"{posixpath.dirname(each)}/index.md": each
        for pattern in ("conformance/README.md", "schemas/README.md", "examples/**/README.md")
        for each in sorted(found.relative_to(ROOT).as_posix() for found in ROOT.glob(pattern))
    },
}
"""Pages of the site whose sources are elsewhere in the project."""

FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
NAMED_FENCE = re.compile(r"^( *```\w+) (\S+)$", re.MULTILINE)
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the examples to the navigation, and to a site of mike the selector of versions."""
    examples = [each for each in PAGES if each.startswith("examples/")]
    if examples:
        config.nav.insert(2, {"Examples": examples})
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside `docs`, the files that pages link to, and the reference."""
    files.remove(files.src_uris["README.md"])
    copied = {**PAGES, **{place_on_site(each): each for each in linked_files(files)}}
    for target, source in copied.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for target, path in playground_files():
        files.append(File.generated(config, target, abs_src_path=str(path)))
    if PYODIDE.is_dir():
        files.append(File.generated(config, ARCHIVE, content=python_archive()))
    for target, text in reference_pages():
        if target in files.src_uris:
            files.remove(files.src_uris[target])
        files.append(File.generated(config, target, content=text))
    return files


def linked_files(files: Files) -> set[str]:
    """Return the files outside `docs` that a page links to, and all schemas."""
    sources = {*PAGES.values(), *(f"docs/{each.src_uri}" for each in files.documentation_pages())}
    links = {
        resolve_link(source, found[2])
        for source in sources
        for found in LINK.finditer((ROOT / source).read_text(encoding="utf-8"))
    }
    schemas = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("schemas/**/*.schema.json")}
    return schemas | {
        link
        for link in links - {*PAGES.values()}
        if not link.startswith("docs/") and (ROOT / link).is_file()
    }


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to the places that files have on the site, and show the names of blocks."""
    parts, end = [], 0
    for fence in FENCED.finditer(markdown):
        parts.append(with_site_links(markdown[end : fence.start()], page.file.src_uri))
        parts.append(NAMED_FENCE.sub(r'\1 title="\2"', fence[0]))
        end = fence.end()
    text = "".join([*parts, with_site_links(markdown[end:], page.file.src_uri)])
    return text.replace(MARK, app())


def with_site_links(text: str, page: str) -> str:
    """Return the text of a page with links that are right on the site."""
    source = PAGES.get(page, f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups(default="")
        target = resolve_link(source, target)
        if (ROOT / target).is_dir() and place_on_site(target) == target.removeprefix("docs/"):
            return text  # a folder without a page
        target = posixpath.relpath(place_on_site(target), posixpath.dirname(page) or ".")
        return f"[{text}]({target}{anchor})"

    return LINK.sub(link, text)


def resolve_link(source: str, link: str) -> str:
    """Return the path of the file that a link in a file of the project names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def place_on_site(source: str) -> str:
    """Return the path on the site of a file or folder of the project."""
    for target, page in PAGES.items():
        if source in (page, posixpath.dirname(page) or page):
            return target
    return source.removeprefix("docs/")
