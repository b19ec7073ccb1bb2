#!/usr/bin/env python3
"""Build a release, check it, and write its checksums and provenance; tag it with --tag.

    python .ci/release.py           # a dry run: no tag, and what would stop a release is a warning
    python .ci/release.py --tag     # also an annotated tag, with the section of the changelog

The files are written to build/release. To publish them: push the tag, then `twine upload` the wheel
and the source distribution. The environment needs `build`, `hatchling` and `twine`.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
HEADING = re.compile(r"^## (?P<version>\S+?),? (?P<day>\d{4}-\d{2}-\d{2}|unreleased)$")
STRAY = re.compile(r"(^|/)(__pycache__|node_modules|\.[^/]*cache|\.env|.*\.(pyc|db|sqlite))(/|$)")
"""Paths that no distribution contains."""


class ReleaseError(Exception):
    """The project cannot be released as it is; one line for each reason."""


@dataclass(frozen=True)
class Project:
    """The project in a folder that is a checkout."""

    root: Path
    name: str
    version: str

    @classmethod
    def read(cls, root: Path) -> "Project":
        """Read pyproject.toml."""
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return cls(root, project["name"], project["version"])

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    @property
    def stem(self) -> str:
        """How the names of its distributions begin."""
        return f"{self.name.replace('-', '_')}-{self.version}"

    def git(self, *words: str) -> str:
        """Run git in the folder and return its output."""
        done = subprocess.run(
            ["git", *words], cwd=self.root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ReleaseError(f"git {words[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def changes(self) -> tuple[str, str]:
        """Return the day and the text of the changelog's section of this version."""
        lines = (self.root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
        headings = [(at, found) for at, each in enumerate(lines) if (found := HEADING.match(each))]
        for at, found in headings:
            if found["version"] == self.version:
                later = [each for each, _ in headings if each > at]
                text = "\n".join(lines[at + 1 : later[0] if later else None]).strip()
                return found["day"], text
        raise ReleaseError(f"CHANGELOG.md has no section '## {self.version}, YYYY-MM-DD'")


def problems(project: Project) -> list[str]:
    """Return why a version cannot be released."""
    found = []
    if changed := project.git("status", "--porcelain"):
        found.append(f"the tree has changes that are not committed:\n{changed}")
    if project.git("tag", "--list", project.tag):
        found.append(f"the tag {project.tag} exists: raise the version in pyproject.toml")
    for module in project.root.glob("*/__init__.py"):
        text = module.read_text(encoding="utf-8")
        declared = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
        if declared and declared[1] != project.version:
            place = module.relative_to(project.root)
            found.append(f"{place}: __version__ is {declared[1]}, not {project.version}")
    day, text = project.changes()
    if day == "unreleased":
        found.append(f"CHANGELOG.md: the section {project.version} needs a date")
    if not text:
        found.append(f"CHANGELOG.md: the section {project.version} is empty")
    return found


def build(project: Project, out: Path) -> list[Path]:
    """Build both distributions, the wheel from the source distribution, and check them."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    # The time of the commit, so that the same commit builds the same files.
    moment = project.git("log", "-1", "--format=%ct")
    _python(project, "-m", "build", "--no-isolation", "--outdir", str(out), moment=moment)
    built = sorted(each for each in out.iterdir() if each.name.startswith(project.stem))
    _python(project, "-m", "twine", "check", "--strict", *map(str, built), moment=moment)
    faults = [fault for each in built for fault in check_contents(project, each)]
    if len(built) != 2 or faults:
        raise ReleaseError("\n".join(faults or [f"expected a wheel and an sdist, got {built}"]))
    return built


def check_contents(project: Project, distribution: Path) -> list[str]:
    """Return what is missing from a distribution, and what does not belong into it."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            names = set(wheel.namelist())
        wanted = [f"{project.stem}.dist-info/{each}" for each in ("METADATA", "licenses/LICENSE")]
    else:
        with tarfile.open(distribution) as archive:
            names = {each.name for each in archive if each.isfile()}
        files = ("PKG-INFO", "pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md")
        wanted = [f"{project.stem}/{each}" for each in files]
    missing = [f"{distribution.name}: {each} is missing" for each in wanted if each not in names]
    return missing + [
        f"{distribution.name}: {each} does not belong there"
        for each in sorted(names)
        if STRAY.search(each)
    ]


def statement(project: Project, files: list[Path]) -> dict[str, object]:
    """Return the provenance of files: an in-toto statement with SLSA's predicate, unsigned."""
    commit = project.git("rev-parse", "HEAD")
    remotes = project.git("remote").split()
    remote = project.git("remote", "get-url", remotes[0]) if remotes else project.root.as_uri()
    return {
        "_type": STATEMENT,
        "subject": [{"name": each.name, "digest": {"sha256": _digest(each)}} for each in files],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"urn:{project.name}:release:1",
                "externalParameters": {"version": project.version, "tag": project.tag},
                "internalParameters": {
                    "python": platform.python_version(),
                    "platform": platform.platform(),
                },
                "resolvedDependencies": [
                    {"uri": f"git+{_public(remote)}@{project.tag}", "digest": {"gitCommit": commit}}
                ],
            },
            "runDetails": {
                "builder": {"id": f"urn:{project.name}:.ci/release.py"},
                "metadata": {"finishedOn": datetime.now(tz=UTC).isoformat(timespec="seconds")},
            },
        },
    }


def release(root: Path, *, tag: bool = False) -> list[Path]:
    """Build and check a release.

    Args:
        root: The checkout.
        tag: Whether to create the tag.

    Returns:
        The files of the release.

    Raises:
        ReleaseError: It cannot be released.
    """
    project = Project.read(root)
    found = problems(project)
    if found and tag:
        raise ReleaseError("\n".join(found))
    for each in found:
        print(f"release: warning: {each}", file=sys.stderr)
    out = root / "build" / "release"
    files = build(project, out)
    sums = out / "SHA256SUMS"
    sums.write_text("".join(f"{_digest(each)}  {each.name}\n" for each in files), encoding="utf-8")
    provenance = out / f"{project.stem}.intoto.json"
    provenance.write_text(json.dumps(statement(project, files), indent=2) + "\n", encoding="utf-8")
    if tag:
        message = f"{project.name} {project.version}\n\n{project.changes()[1]}\n"
        project.git("tag", "--annotate", project.tag, "--cleanup=verbatim", "--message", message)
    return [*files, sums, provenance]


def _python(project: Project, *words: str, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=project.root,
        env={**os.environ, "SOURCE_DATE_EPOCH": moment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words[:3])} failed:\n{done.stdout}{done.stderr}".rstrip())


def _public(url: str) -> str:
    """Return a URL without the user and the password that it may hold."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Release the project of the current folder; return the exit code."""
    parser = argparse.ArgumentParser(description="Build and check a release.")
    parser.add_argument("--tag", action="store_true", help="create the tag; else a dry run")
    options = parser.parse_args()
    try:
        files = release(Path.cwd(), tag=options.tag)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(*files, sep="\n")
    print("tagged" if options.tag else "dry run: no tag; 'release.py --tag' creates it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
