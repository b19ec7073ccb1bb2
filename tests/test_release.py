"""`.ci/release.py`: what stops a release, and what it writes."""

import importlib.util
import json
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "release.py"
if not SCRIPT.is_file():
    pytest.skip("a source distribution has no .ci", allow_module_level=True)

FILES = {
    "pyproject.toml": '[build-system]\nrequires = ["hatchling"]\n'
    'build-backend = "hatchling.build"\n'
    '[project]\nname = "a-tool"\nversion = "1.2.0"\nrequires-python = ">=3.11"\n'
    '[tool.hatch.build.targets.wheel]\npackages = ["tool"]\n',
    "tool/__init__.py": '__version__ = "1.2.0"\n',
    "README.md": "# A tool\n",
    "LICENSE": "none\n",
    ".gitignore": "build/\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0, 2030-01-31\n\n* Better.\n\n"
    "## 1.1.0, 2029-01-01\n\n* Old.\n",
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release_script"] = module
    spec.loader.exec_module(module)
    return module


def git(root: Path, *words: str) -> str:
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    return subprocess.run(
        ["git", *author, *words], cwd=root, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of a small project."""
    for variable, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org")):
        monkeypatch.setenv(f"GIT_COMMITTER_{variable}", value)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "Change")


@pytest.fixture
def built(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build with hatchling itself: `build` and `twine` are no development dependencies."""

    def run(project: object, *words: str, moment: str) -> None:
        if words[1] == "build":
            command = [sys.executable, "-m", "hatchling", "build", "-d", words[-1]]
            subprocess.run(command, cwd=project.root, capture_output=True, check=True)  # type: ignore[attr-defined]

    monkeypatch.setattr(script, "_python", run)


@pytest.mark.usefixtures("built")
def test_dry_run_writes_everything_but_the_tag(script: ModuleType, project: Path) -> None:
    files = script.release(project)
    names = ["a_tool-1.2.0-py3-none-any.whl", "a_tool-1.2.0.tar.gz"]
    assert [each.name for each in files] == [*names, "SHA256SUMS", "a_tool-1.2.0.intoto.json"]
    digests = {each.name: sha256(each.read_bytes()).hexdigest() for each in files[:2]}
    assert files[2].read_text() == "".join(f"{digests[name]}  {name}\n" for name in names)
    statement = json.loads(files[3].read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    assert {each["name"]: each["digest"]["sha256"] for each in statement["subject"]} == digests
    (source,) = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"]["gitCommit"] == git(project, "rev-parse", "HEAD").strip()
    assert git(project, "tag") == ""
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.usefixtures("built")
def test_tag_has_the_section_of_the_changelog(script: ModuleType, project: Path) -> None:
    script.release(project, tag=True)
    message = git(project, "tag", "--list", "--format=%(contents)", "v1.2.0")
    assert message.strip() == "a-tool 1.2.0\n\n* Better."
    with pytest.raises(script.ReleaseError, match=r"the tag v1\.2\.0 exists"):
        script.release(project, tag=True)


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("CHANGELOG.md", "1.2.0,", "1.3.0,", "CHANGELOG.md has no section '## 1.2.0, "),
        ("CHANGELOG.md", "* Better.", "", "the section 1.2.0 is empty"),
        ("CHANGELOG.md", "2030-01-31", "unreleased", "the section 1.2.0 needs a date"),
        ("tool/__init__.py", "1.2.0", "1.1.0", "__version__ is 1.1.0, not 1.2.0"),
    ],
)
def test_reason_against_a_release(
    script: ModuleType, project: Path, file: str, old: str, new: str, reason: str
) -> None:
    path = project / file
    path.write_text(path.read_text().replace(old, new))
    commit(project)
    with pytest.raises(script.ReleaseError) as refused:
        script.release(project, tag=True)
    assert reason in str(refused.value)


@pytest.mark.usefixtures("built")
def test_changes_that_are_not_committed_stop_a_release(
    script: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a dry run they are a warning."""
    (project / "new.txt").write_text("new")
    with pytest.raises(script.ReleaseError, match=r"\?\? new\.txt"):
        script.release(project, tag=True)
    assert len(script.release(project)) == 4
    assert "warning: the tree has changes that are not committed" in capsys.readouterr().err


def test_contents_that_do_not_belong_into_a_wheel(script: ModuleType, project: Path) -> None:
    wheel = project / "a_tool-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("a_tool-1.2.0.dist-info/METADATA", "tool/__pycache__/a.pyc", "runs.db"):
            archive.writestr(name, "")
    assert script.check_contents(script.Project.read(project), wheel) == [
        f"{wheel.name}: a_tool-1.2.0.dist-info/licenses/LICENSE is missing",
        f"{wheel.name}: runs.db does not belong there",
        f"{wheel.name}: tool/__pycache__/a.pyc does not belong there",
    ]


def test_provenance_names_no_credentials(project: Path, script: ModuleType) -> None:
    git(project, "remote", "add", "origin", "https://ada:secret@example.org/a-tool.git")
    statement = script.statement(script.Project.read(project), [])
    (source,) = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["uri"] == "git+https://example.org/a-tool.git@v1.2.0"
