"""Agents files: who answers for the names in a document, written down (YAML or JSON).

    agents:
      Reviewer: review_tools:review                  # a function
      Translator: {command: [node, translate.js]}    # a program that speaks lines of JSON
      Critic: {return: {score: 9}}                   # a script
    resources:
      "arn:aws:lambda:*:function:Charge": billing:charge
    mocks:
      AskTheBoss: {raise: {Error: OutOfOffice}}      # by the name of the Task state

A file without any of these three keys is the mapping of `agents` itself.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asl.agents.function import named_function
from asl.agents.scripted import SCRIPT_KEYS, check_script
from asl.core.diagnostics import did_you_mean, escape
from asl.core.document import Document, read_value
from asl.core.errors import AslError
from asl.core.values import Json, type_name
from asl.engine.agent import Openable

__all__ = ["Bindings", "InvalidAgents", "load_bindings"]

SECTIONS = ("agents", "resources", "mocks")
COMMAND_KEYS = ("command", "folder", "environment")
SPEC_KEYS = ("function", *COMMAND_KEYS, *SCRIPT_KEYS)
FORMS = "an agent is 'module:function', or an object with 'command' or a script ('return', ...)"


class InvalidAgents(AslError):
    """An agents file does not have the format; a line `file:line:column: ...` for each fault."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """What an agents file binds, as `asl.run` takes it."""

    agents: dict[str, Any]
    resources: dict[str, Any]
    mocks: dict[str, Any]

    def __or__(self, other: "Bindings") -> "Bindings":
        """Return the bindings of both; those of *other* win."""
        return Bindings(
            self.agents | other.agents, self.resources | other.resources, self.mocks | other.mocks
        )


def load_bindings(path: str | os.PathLike[str], *, import_functions: bool = True) -> Bindings:
    """Read an agents file; without *import_functions* functions stay `"module:function"`.

    Raises InvalidAgents with every fault and its place, `InvalidDocument` for a file that is
    neither JSON nor YAML, `DocumentNotFound` for a missing one.
    """
    document = read_value(Path(path))
    reader = _Reader(document, Path(path).resolve().parent, import_functions)
    bound = reader.read()
    if reader.faults:
        raise InvalidAgents("\n".join(reader.faults))
    return bound


class _Fault(Exception):
    """Something is wrong below a spec; `pointer` is relative to it."""

    def __init__(self, message: str, pointer: str = "", *, at_key: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer
        self.at_key = at_key


class _Reader:
    """Reads one file and gathers its faults."""

    def __init__(self, document: Document, folder: Path, import_functions: bool) -> None:
        self.document = document
        self.folder = folder
        self.import_functions = import_functions
        self.faults: list[str] = []

    def read(self) -> Bindings:
        """Read every section."""
        value = self.document.value
        if type(value) is not dict:
            self._fault("", f"an agents file is an object, not {type_name(value)}")
            return Bindings({}, {}, {})
        if value.keys().isdisjoint(SECTIONS):
            return Bindings(self._section("", value), {}, {})
        for key in value.keys() - set(SECTIONS):
            self._fault(f"/{escape(key)}", _unknown(key, SECTIONS), at_key=True)
        return Bindings(*(self._section(f"/{key}", value.get(key, {})) for key in SECTIONS))

    def _section(self, pointer: str, value: Json) -> dict[str, Any]:
        if type(value) is not dict:
            self._fault(pointer, f"names with their agents, not {type_name(value)}")
            return {}
        bound = {}
        for name, spec in value.items():
            at = f"{pointer}/{escape(name)}"
            try:
                bound[name] = self._agent(spec)
            except _Fault as fault:
                hint = did_you_mean(name, SECTIONS) if not pointer else None
                text = f"{name}: {fault.message}" + (f" ({hint})" if hint else "")
                self._fault(at + fault.pointer, text, at_key=fault.at_key)
        return bound

    def _fault(self, pointer: str, message: str, *, at_key: bool = False) -> None:
        place = self.document.locate(pointer, at_key)
        where = f"{self.document.source.name}:{place.line}:{place.column}"
        self.faults.append(f"{where}: {message}")

    def _agent(self, spec: Json) -> Any:
        if type(spec) is str:
            return self._function(spec, "")
        if type(spec) is not dict:
            raise _Fault(f"{FORMS}, not {type_name(spec)}")
        for key in spec:
            if key not in SPEC_KEYS:
                raise _Fault(_unknown(key, SPEC_KEYS), f"/{escape(key)}", at_key=True)
        if "function" in spec:
            _only(spec, ("function",))
            return self._function(spec["function"], "/function")
        if not spec.keys().isdisjoint(COMMAND_KEYS):
            _only(spec, COMMAND_KEYS)
            return self._process(spec)
        return _script(spec)

    def _function(self, name: Json, pointer: str) -> Any:
        if type(name) is not str or ":" not in name.strip(":"):
            raise _Fault(f"a function is written 'module:function', not {name!r}", pointer)
        if not self.import_functions:
            return name
        try:
            return named_function(name)
        except AslError as error:
            raise _Fault(str(error), pointer) from error

    def _process(self, spec: Mapping[str, Json]) -> Openable:
        command = spec.get("command")
        if type(command) is not list or not command or not all(type(e) is str for e in command):
            raise _Fault(
                "'command' is a list of the program and its arguments",
                "/command" if "command" in spec else "",
            )
        folder = spec.get("folder", ".")
        if type(folder) is not str or not (self.folder / folder).is_dir():
            raise _Fault(f"'folder' is no folder: {folder!r}", "/folder")
        environment = spec.get("environment")
        if environment is not None and not _are_texts(environment):
            raise _Fault("'environment' holds texts by name", "/environment")
        from asl.agents.process import ProcessAgent

        return ProcessAgent(command, folder=str(self.folder / folder), environment=environment)


def _are_texts(value: Json) -> bool:
    return type(value) is dict and all(type(each) is str for each in value.values())


def _only(spec: Mapping[str, Json], keys: tuple[str, ...]) -> None:
    for key in spec:
        if key not in keys:
            raise _Fault(f"{key!r} does not go with {keys[0]!r}", f"/{escape(key)}", at_key=True)


def _unknown(key: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(key, known) or f"there are {', '.join(known)}"
    return f"unknown key {key!r} ({hint})"


_SCRIPT_FAULT = re.compile(r"script((?:\.\w+|\[\d+\])*): (.*)", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def _script(spec: Mapping[str, Json]) -> Mapping[str, Json]:
    try:
        check_script(spec)
    except AslError as error:
        found = _SCRIPT_FAULT.fullmatch(str(error))
        assert found is not None
        raise _Fault(found[2], "".join(_steps(found[1]))) from error
    return spec


def _steps(place: str) -> Iterator[str]:
    for key, index in _STEP.findall(place):
        yield f"/{key or index}"
