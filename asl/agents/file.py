"""Agents files: who answers for the names in a document, written down (YAML or JSON).

    agents:
      Reviewer: review_tools:review                  # a function
      Translator: {command: [node, translate.js]}    # a program that speaks lines of JSON
      Editor: {url: "https://editor.example/check"}  # an HTTP endpoint
      Critic: {return: {score: 9}}                   # a script
    resources:
      "arn:aws:lambda:*:function:Charge": billing:charge
    mocks:
      AskTheBoss: {raise: {Error: OutOfOffice}}      # by the name of the Task state

A file without any of these keys is the mapping of `agents` itself. The kinds of agents are a table,
`asl.agents.kinds`; `${env:NAME}` and `${file:PATH}` stand for secrets (`asl.agents.secrets`).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from asl.agents.kind import Home, Kind, Spec
from asl.agents.kinds import KINDS
from asl.agents.secrets import Discreet, found, looked_up
from asl.checks.structure import shape
from asl.checks.workflow import Suggestions
from asl.core.diagnostics import Finding, Report, Severity, did_you_mean, escape, place
from asl.core.document import Document, read_value
from asl.core.errors import AslError, InvalidDocument
from asl.core.values import Json, type_name

__all__ = ["Bindings", "InvalidAgents", "check_agents", "is_agents_file", "load_bindings"]

SECTIONS = ("agents", "resources", "mocks")


class InvalidAgents(InvalidDocument):
    """An agents file has errors; `report` says which and where."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """What an agents file binds, as `asl.run` takes it."""

    agents: dict[str, Any]
    resources: dict[str, Any]
    mocks: dict[str, Any]

    def __or__(self, other: "Bindings") -> "Bindings":
        """Return the bindings of both; those of *other* win."""
        names = [field.name for field in fields(self)]
        return Bindings(*({**getattr(self, name), **getattr(other, name)} for name in names))


def load_bindings(path: str | os.PathLike[str], *, build: bool = True) -> Bindings:
    """Read an agents file and make its agents; without *build* they stay as they are written.

    Raises InvalidAgents with every fault and its place, `InvalidDocument` for a file that is
    neither JSON nor YAML, `DocumentNotFound` for a missing one.
    """
    file = _File(read_value(Path(path)), Path(path).resolve().parent)
    report = file.report(file.findings())
    if report.ok and build:
        bound = file.each(file.built)
        report = file.report(file.faults)
    else:
        bound = file.each(lambda pointer, spec: spec)
    if not report.ok:
        raise InvalidAgents(report)
    return bound


def check_agents(document: Document, *, strict: bool = False) -> Report:
    """Check an agents file and return everything found; no code of its agents runs.

    Paths begin at the folder of the file. `strict` makes every warning an error.
    """
    file = _File(document, Path(document.source.name or "").resolve().parent)
    findings = list(file.findings())
    if strict:
        findings = [replace(finding, severity=Severity.ERROR) for finding in findings]
    return file.report(findings)


def is_agents_file(document: Document) -> bool:
    """Whether this is an agents file, by its name or, if that says nothing, by its sections."""
    name = Path(document.source.name or "").name
    value = document.value
    if type(value) is not dict or not value.keys().isdisjoint(("StartAt", "States")):
        return False
    stem = name.rpartition(".")[0]
    return stem == "agents" or stem.endswith(".agents") or not value.keys().isdisjoint(SECTIONS)


class _File:
    """One agents file: what it says, and what is wrong with it."""

    def __init__(self, document: Document, folder: Path) -> None:
        self.document = document
        self.home = Home(folder)
        self.faults: list[Finding] = []
        value = document.value
        self.parted = type(value) is dict and not value.keys().isdisjoint(SECTIONS)

    def report(self, findings: Iterable[Finding]) -> Report:
        """Return findings with their places."""
        return place(self.document, findings)

    # What is wrong, as far as it shows without making anything

    def findings(self) -> Iterator[Finding]:
        """Yield everything that the file breaks."""
        suggestions = Suggestions()
        value = self.document.value
        if type(value) is not dict or self.parted:
            name = "agents:Sections" if type(value) is dict else "agents"
            yield from shape(name, value, "", suggestions)
        for section, pointer, spec in self._specs():
            for finding in self._agent(pointer, spec, suggestions):
                meant = None if self.parted else did_you_mean(section, SECTIONS)
                hint = meant or finding.hint
                yield replace(finding, pointer=pointer + finding.pointer, hint=hint)

    def _agent(self, pointer: str, spec: Json, suggestions: Suggestions) -> Iterator[Finding]:
        """Yield what is wrong with one agent; pointers begin there."""
        written = spec
        if type(spec) is str:
            spec = {"function": spec}
        kind = _kind(spec)
        if isinstance(kind, Finding):
            yield kind
            return
        wrong = [
            replace(each, pointer=each.pointer.removeprefix(pointer))
            for each in shape(kind.schema, spec, pointer, suggestions)
        ] or list(kind.check(spec, self.home))
        wrong += _open_secrets(spec, kind)
        if type(written) is str:
            wrong = [replace(each, pointer="") for each in wrong]
        yield from wrong

    # What comes of it

    def each(self, made: Callable[[str, Json], Any]) -> Bindings:
        """Return every agent as *made* makes it of its pointer and what is written there."""
        bound: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        for section, pointer, spec in self._specs():
            name = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            bound[section if self.parted else "agents"][name] = made(pointer, spec)
        return Bindings(**bound)

    def built(self, pointer: str, spec: Json) -> Any:
        """Make an agent; what prevents it is noted as a fault."""
        if type(spec) is str:
            spec = {"function": spec}
        kind = _kind(spec)
        assert isinstance(kind, Kind)
        secrets: set[str] = set()
        try:
            spec = {
                key: self._with_secrets(value, f"{pointer}/{key}", secrets)
                if key in kind.secrets
                else value
                for key, value in spec.items()
            }
            agent = kind.build(spec, self.home)
        except _NoSecret as fault:
            self.faults.append(Finding("AGENTS-06", str(fault), fault.pointer))
        except AslError as error:
            self.faults.append(Finding("AGENTS-04", str(error), pointer))
        else:
            return Discreet(agent, secrets) if secrets else agent

    def _with_secrets(self, value: Json, pointer: str, secrets: set[str]) -> Json:
        if type(value) is dict:
            return {
                key: self._with_secrets(each, f"{pointer}/{escape(key)}", secrets)
                for key, each in value.items()
            }
        try:
            return looked_up(value, self.home.folder, secrets)
        except AslError as error:
            raise _NoSecret(str(error), pointer) from None

    def _specs(self) -> Iterator[tuple[str, str, Json]]:
        """Yield every agent: its section (its name, in a file without), pointer and spec."""
        value = self.document.value
        if not self.parted:
            for name, spec in value.items() if type(value) is dict else ():
                yield name, f"/{escape(name)}", spec
            return
        for section in SECTIONS:
            members = value.get(section)
            for name, spec in members.items() if type(members) is dict else ():
                yield section, f"/{section}/{escape(name)}", spec


class _NoSecret(Exception):
    """A secret is not there; `pointer` is where it is asked for."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message)
        self.pointer = pointer


def _kind(spec: Json) -> Kind | Finding:
    """Return the kind of an agent, or what is wrong where that is not clear."""
    if type(spec) is not dict:
        noun = type_name(spec)
        message = f"an agent is 'module:function' or an object, not {noun}"
        return Finding("AGENTS-03", message, "")
    keys = [key for key in KINDS if key in spec]
    kinds = {id(KINDS[key]) for key in keys}
    if len(kinds) == 1:
        return KINDS[keys[0]]
    if kinds:
        message = f"{keys[0]!r} and {keys[1]!r} exclude each other"
        return Finding("AGENTS-03", message, f"/{keys[1]}", at_key=True)
    for key in spec:
        if hint := did_you_mean(key, KINDS):
            message = f"there is no field {key!r} here"
            return Finding("AGENTS-02", message, f"/{escape(key)}", hint, at_key=True)
    return Finding(
        "AGENTS-03", "nothing says what kind of agent this is", "", f"add one of {', '.join(KINDS)}"
    )


def _open_secrets(spec: Spec, kind: Kind) -> Iterator[Finding]:
    """Yield secrets where they would be seen, and what only looks like one."""
    for pointer, match in found(spec):
        allowed = pointer.split("/")[1] in kind.secrets
        if allowed and match[1] is None:
            yield Finding(
                "AGENTS-07",
                f"{match[0]!r} is not filled in",
                pointer,
                f"write ${{env:{match[2]}}}" if match[2].isidentifier() else None,
            )
        elif match[1] is not None and not allowed:
            where = " or ".join(f"'{field}'" for field in kind.secrets)
            yield Finding(
                "AGENTS-05",
                f"{match[0]!r} would be shown: no secret may stand here",
                pointer,
                f"a secret may stand in {where}" if where else "this kind of agent takes no secret",
            )
