"""Agents files: bindings of the names in a document, in YAML or JSON.

    agents:
      Reviewer: review_tools:review                  # a function
      Translator: {command: [node, translate.js]}    # a program that speaks lines of JSON
      Editor: {url: "https://editor.example/check"}  # an HTTP endpoint
      Writer: {model: "openai:gpt-5", tools: [Search]}
      Critic: {return: {score: 9}}                   # a script
      Reader: {server: files, tool: read_file}       # a tool of an MCP server
    tools:
      Search: {description: Searches the archive., agent: archive:search}
    servers:
      files: {command: [node, files.js]}
    resources:
      "arn:aws:lambda:*:function:Charge": billing:charge
    mocks:
      AskTheBoss: {raise: {Error: OutOfOffice}}      # by the name of the Task state
    memory:
      redis: "redis://:${env:REDIS_PASSWORD}@cache"  # by the backend that documents name
    aws: {endpoint: "http://127.0.0.1:4566"}         # calls of AWS's services

A file without any of these keys is the mapping of `agents` itself. The kinds of agents are in the
table `KINDS`; `${env:NAME}` and `${file:PATH}` are secrets (`asl.agents.secrets`).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from asl.agents.adapters import FUNCTION
from asl.agents.agent_kinds import AgentKind, AgentSpec
from asl.agents.http import HTTP
from asl.agents.mcp import MCP, SERVER_SECRETS, McpServer, build_server, check_server
from asl.agents.model import MODEL
from asl.agents.process import PROCESS
from asl.agents.registry import FileBindings
from asl.agents.scripted import SCRIPT, SCRIPTS
from asl.agents.secrets import SecretFilter, find_placeholders, looked_up, secrets_in
from asl.agents.sections import SECTIONS, WITH_AGENTS
from asl.agents.tool import Tool
from asl.checks.structure import shape
from asl.core.diagnostics import (
    Finding,
    InvalidDocument,
    Report,
    Severity,
    Suggestions,
    did_you_mean,
    place,
)
from asl.core.document import Document, is_workflow, read_value
from asl.core.errors import AslError
from asl.core.pointers import escape
from asl.core.python_imports import import_object
from asl.core.schemas import schema_faults
from asl.core.values import Json, type_name
from asl.engine.tools import Toolbox
from asl.states.schemas import known_fields

__all__ = ["KINDS", "InvalidAgents", "check_agents", "load_bindings"]

KINDS: Mapping[str, AgentKind] = MappingProxyType(
    {
        "function": FUNCTION,
        "command": PROCESS,
        "url": HTTP,
        "model": MODEL,
        "server": MCP,
        **dict.fromkeys(SCRIPTS, SCRIPT),
    }
)


class InvalidAgents(InvalidDocument):
    """An agents file has errors; `report` says which and where."""


def load_bindings(
    path: str | os.PathLike[str],
    *,
    build: bool = True,
    warn: Callable[[Report], object] | None = None,
) -> FileBindings:
    """Read an agents file and make its agents.

    Args:
        path: The file.
        build: Make the agents; without it the bindings are as written.
        warn: Receives the report of a file with warnings only.

    Raises:
        InvalidAgents: The file has errors; `report` has all of them.
        InvalidDocument: The file is neither JSON nor YAML.
        DocumentNotFound: The file is missing.
    """
    file = _File(read_value(Path(path)), Path(path).resolve().parent, imports=build)
    report = warnings = file.report(file.findings())
    bound = file.bindings()
    if report.ok and build:
        bound = file.build()
        report = file.report(file.faults)
    if not report.ok:
        raise InvalidAgents(report)
    if warnings and warn is not None:
        warn(warnings)
    return bound


def check_agents(document: Document, *, strict: bool = False) -> Report:
    """Check an agents file and return everything found; no code of its agents runs.

    Paths begin at the folder of the file. `strict` makes every warning an error.
    """
    file = _File(document, Path(document.source.name or "").resolve().parent)
    report = file.report(file.findings())
    if not strict:
        return report
    graded = (
        each._replace(severity=Severity.ERROR) if each.severity is Severity.WARNING else each
        for each in report
    )
    return replace(report, diagnostics=tuple(graded))


class _File:
    """One agents file and its faults (protocol `FileContext`)."""

    def __init__(self, document: Document, folder: Path, *, imports: bool = False) -> None:
        self.document = document
        self.folder = folder
        self.imports = imports
        self.code = tuple(dict.fromkeys((folder, Path.cwd())))
        self.faults: list[Finding] = []
        self.suggestions = Suggestions()
        self.secrets: frozenset[str] = frozenset()
        """All secrets of the file; each agent masks all of them, since agents share data."""
        self.tools: dict[str, Tool | None] = {}
        """Those that are made; None for one that is being made, or cannot be."""
        self.servers: dict[str, McpServer | None] = {}
        value = document.value
        self.parted = type(value) is dict and not value.keys().isdisjoint(SECTIONS)

    def report(self, findings: Iterable[Finding]) -> Report:
        """Return findings with their places, without AWS's wording."""
        return place(self.document, (each._replace(aws=None) for each in findings))

    def section(self, name: str) -> Mapping[str, Json]:
        """Return the members of a section; a file without sections has agents only."""
        value = self.document.value
        if not self.parted:
            return value if type(value) is dict and name == "agents" else {}
        members = value.get(name)
        return members if type(members) is dict else {}

    def _pointer(self, section: str, name: str) -> str:
        return f"/{section}/{escape(name)}" if self.parted else f"/{escape(name)}"

    # What is wrong, as far as it shows without making anything

    def findings(self) -> Iterator[Finding]:
        """Yield everything that the file breaks."""
        value = self.document.value
        if is_workflow(value):
            message = "this is a workflow, not an agents file"
            yield Finding("AGENTS-01", message, "", "pass the file with the bindings of its agents")
            return
        if type(value) is not dict or self.parted:
            name = "agents:Sections" if type(value) is dict else "agents"
            yield from shape(name, value, "", self.suggestions)
        for section in WITH_AGENTS:
            for name, spec in self.section(section).items():
                for finding in self._agent(self._pointer(section, name), spec):
                    meant = None if self.parted else did_you_mean(name, SECTIONS)
                    yield finding._replace(hint=meant or finding.hint)
        for name, spec in self.section("tools").items():
            yield from self._tool(self._pointer("tools", name), spec)
            yield from self._circles(name)
        for name, where in self.section("memory").items():
            pointer = self._pointer("memory", name)
            unfilled = self._secrets({"memory": where}, ("memory",))
            yield from (each._replace(pointer=pointer) for each in unfilled)
        for name, spec in self.section("servers").items():
            if type(spec) is dict:
                pointer = self._pointer("servers", name)
                wrong = (*check_server(spec, self), *self._secrets(spec, SERVER_SECRETS))
                yield from (each._replace(pointer=pointer + each.pointer) for each in wrong)

    def _tool(self, pointer: str, spec: Json) -> Iterator[Finding]:
        if type(spec) is dict and "agent" in spec:
            yield from self._agent(f"{pointer}/agent", spec["agent"])
        if type(spec) is dict and type(spec.get("input")) is dict:
            yield from schema_faults("AGENTS-01", spec["input"], f"{pointer}/input")

    def _circles(self, name: str) -> Iterator[Finding]:
        """Yield the tools of the agent of a tool that lead back to the tool."""
        pointer = f"{self._pointer('tools', name)}/agent/tools"
        for index, needed in enumerate(self._needed(name)):
            reached, rest = set[str](), [needed]
            while rest:
                each = rest.pop()
                if each not in reached:
                    reached.add(each)
                    rest += self._needed(each)
            if name in reached:
                message = f"the tool {name!r} needs itself"
                yield Finding("AGENTS-04", message, f"{pointer}/{index}", "take it out here")

    def _needed(self, name: str) -> list[str]:
        """Return the tools that the agent of a tool is given."""
        spec = self.section("tools").get(name)
        agent = spec.get("agent") if type(spec) is dict else None
        given = agent.get("tools") if type(agent) is dict else None
        if type(given) is not list or not all(type(each) is str for each in given):
            return []  # reported by the schema
        return given

    def _agent(self, pointer: str, spec: Json) -> Iterator[Finding]:
        """Yield what is wrong with one agent."""
        written = spec
        if type(spec) is str:
            spec = {"function": spec}
        kind = _kind(spec)
        if isinstance(kind, Finding):
            yield kind._replace(pointer=pointer + kind.pointer)
            return
        wrong = [
            _hinted(each, kind, spec, pointer)
            for each in shape(kind.schema, spec, pointer, self.suggestions)
        ]
        if not wrong:
            wrong = [
                each._replace(pointer=pointer + each.pointer) for each in kind.check(spec, self)
            ]
        wrong += (
            each._replace(pointer=pointer + each.pointer)
            for each in self._secrets(spec, kind.secrets)
        )
        if type(written) is str:
            wrong = [each._replace(pointer=pointer) for each in wrong]
        yield from wrong

    def _secrets(self, spec: AgentSpec, fields: tuple[str, ...]) -> Iterator[Finding]:
        """Yield secrets in visible fields, missing secrets, and unfilled placeholders."""
        for pointer, match in find_placeholders(spec):
            allowed = pointer.split("/")[1] in fields
            if allowed and match[1] is None:
                name = match[3] or match[2].rpartition(":")[2].strip()
                yield Finding(
                    "AGENTS-07",
                    f"{match[0]!r} is not filled in",
                    pointer,
                    f"write ${{env:{name}}}" if name.isidentifier() else None,
                )
            elif allowed:
                try:
                    looked_up(match[0], self.folder)
                except AslError as error:  # it may be there where the file is used
                    yield Finding("AGENTS-06", str(error), pointer, severity=Severity.INFO)
            elif match[1] is not None:
                where = " or ".join(f"'{field}'" for field in fields)
                yield Finding(
                    "AGENTS-05",
                    f"a secret is not allowed here: {match[0]!r} would be visible",
                    pointer,
                    f"secrets are allowed in {where}"
                    if where
                    else "this kind of agent takes no secret",
                )

    def tool_faults(self, name: str, pointer: str) -> Iterator[Finding]:
        """Yield the faults of the name of a tool at *pointer*."""
        tools = self.section("tools")
        server, slash, _ = name.rpartition("/")
        if name not in tools and slash:
            yield from self.server_faults(server, pointer)
        elif name not in tools:
            message = f"the file has no tool {name!r}"
            yield Finding("AGENTS-08", message, pointer, did_you_mean(name, tools))

    def server_faults(self, name: str, pointer: str) -> Iterator[Finding]:
        """Yield the faults of the name of a server at *pointer*."""
        servers = self.section("servers")
        if name not in servers:
            message = f"the file has no server {name!r}"
            yield Finding("AGENTS-08", message, pointer, did_you_mean(name, servers))

    # What comes of it

    def bindings(self) -> FileBindings:
        """Return what the file binds as it is written."""
        return FileBindings(*(dict(self.section(section)) for section in SECTIONS))

    def build(self) -> FileBindings:
        """Make everything; what prevents it is noted in `faults`."""
        bound = self.bindings()
        self.secrets = secrets_in(self.document.value, self.folder)
        for section in WITH_AGENTS:
            members = getattr(bound, section)
            for name, spec in members.items():
                members[name] = self._built(self._pointer(section, name), spec)
        for section, made in (("tools", self.tool), ("servers", self.server)):
            members = getattr(bound, section)
            for name in members:
                try:
                    members[name] = made(name)
                except AslError as error:
                    if not self.faults:  # the cause is not reported yet
                        at = self._pointer(section, name)
                        self.faults.append(Finding("AGENTS-04", str(error), at))
        for backend, where in bound.memory.items():
            bound.memory[backend] = self._memory(backend, where)
        return bound

    def _memory(self, backend: str, where: str) -> Any:
        """Return where the memory of a backend is; what prevents it is noted as a fault."""
        pointer = self._pointer("memory", backend)
        try:
            if backend == "custom":
                named = import_object(where, self.code)
                return named() if callable(named) else named
        except AslError as error:
            self.faults.append(Finding("AGENTS-04", str(error), pointer))
        try:
            where = looked_up(where, self.folder, quoted=True)
        except AslError as error:
            self.faults.append(Finding("AGENTS-06", str(error), pointer))
        return where if "://" in where else str(self.folder / where)

    def server(self, name: str) -> McpServer:
        """Return the MCP server of this name; raises AslError if it cannot be made."""
        if name not in self.servers:
            spec = self.section("servers")[name]
            pointer = self._pointer("servers", name)
            self.servers[name] = None
            try:
                spec = self._filled(spec, SERVER_SECRETS, pointer)
                self.servers[name] = build_server(name, spec, self, self.secrets)
            except _NoSecret as fault:
                self.faults.append(Finding("AGENTS-06", str(fault), fault.pointer))
        made = self.servers[name]
        if made is None:
            raise AslError(f"the server {name!r} cannot be made")
        return made

    def tool(self, name: str) -> Toolbox:
        """Return the tool of this name; raises AslError if it cannot be made."""
        server, slash, own = name.rpartition("/")
        if name not in self.section("tools") and slash:
            return self.server(server) if own == "*" else self.server(server).tool(own)
        if name not in self.tools:
            self.tools[name] = None
            spec, pointer = self.section("tools")[name], self._pointer("tools", name)
            agent = self._built(f"{pointer}/agent", spec["agent"])
            if agent is not None:
                self.tools[name] = Tool(name, spec["description"], agent, input=spec.get("input"))
        made = self.tools[name]
        if made is None:
            raise AslError(f"the tool {name!r} cannot be made")
        return made

    def _built(self, pointer: str, spec: Json) -> Any:
        """Make an agent; what prevents it is noted as a fault."""
        if type(spec) is str:
            spec = {"function": spec}
        kind = _kind(spec)
        assert isinstance(kind, AgentKind)
        try:
            spec = self._filled(spec, kind.secrets, pointer)
            agent = kind.build(spec, self)
        except _NoSecret as fault:
            self.faults.append(Finding("AGENTS-06", str(fault), fault.pointer))
        except AslError as error:
            self.faults.append(Finding("AGENTS-04", str(error), pointer))
        else:
            return (
                SecretFilter(agent, self.secrets) if self.secrets and not kind.discreet else agent
            )

    def _filled(self, spec: AgentSpec, fields: tuple[str, ...], pointer: str) -> dict[str, Json]:
        """Return a spec with the secrets of its *fields* in place."""
        return {
            key: self._with_secrets(value, f"{pointer}/{key}") if key in fields else value
            for key, value in spec.items()
        }

    def _with_secrets(self, value: Json, pointer: str) -> Json:
        if type(value) is dict:
            return {
                key: self._with_secrets(each, f"{pointer}/{escape(key)}")
                for key, each in value.items()
            }
        try:
            return looked_up(value, self.folder)
        except AslError as error:
            raise _NoSecret(str(error), pointer) from None


class _NoSecret(Exception):
    """A secret is not there; `pointer` is where it is asked for."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message)
        self.pointer = pointer


def _hinted(finding: Finding, kind: AgentKind, spec: AgentSpec, pointer: str) -> Finding:
    """Return a finding with the hint of the kind for its value."""
    field = finding.pointer.removeprefix(f"{pointer}/")
    hint = kind.meant[field](spec[field]) if field in kind.meant and field in spec else None
    return finding if hint is None else finding._replace(hint=hint)


def _kind(spec: Json) -> AgentKind | Finding:
    """Return the kind of an agent, or what is wrong where that is not clear."""
    if type(spec) is not dict:
        message = f"an agent is 'module:function' or an object, not of type {type_name(spec)}"
        return Finding("AGENTS-03", message, "")
    keys = [key for key in KINDS if key in spec]
    # What says the kind of one agent may be an ordinary field of another.
    kinds = {
        kind.schema: kind
        for kind in (KINDS[key] for key in keys)
        if known_fields(kind.schema).issuperset(keys)
    }
    if kinds:
        return next(iter(kinds.values()))
    if keys:
        message = f"{keys[0]!r} and {keys[1]!r} exclude each other"
        return Finding("AGENTS-03", message, f"/{keys[1]}", at_key=True)
    for key in spec:
        if hint := did_you_mean(key, KINDS):
            message = f"there is no field {key!r} here"
            return Finding("AGENTS-02", message, f"/{escape(key)}", hint, at_key=True)
    return Finding(
        "AGENTS-03", "the kind of agent is missing", "", f"add one of {', '.join(KINDS)}"
    )
