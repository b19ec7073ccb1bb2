"""Cases: what they say, and how they are read from files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from asl.agents.scripted import check_script
from asl.agents.sections import is_agents_file
from asl.compose import load
from asl.core.diagnostics import InvalidDocument, bounded_suggestions, did_you_mean, misspelt
from asl.core.document import Document, contents, is_workflow, read_value
from asl.core.environment import data_folder
from asl.core.errors import AslError, DocumentNotFound, ExpressionFault
from asl.core.pointers import escape
from asl.core.schemas import jsonschema
from asl.core.source import MAX_FAULTS
from asl.core.values import Json
from asl.dialects.registry import NATIVE
from asl.documents.conversion import detect
from asl.expr.times import parse_timestamp

__all__ = ["CHECK_FACTS", "DOCUMENTS", "NAME", "Case", "InvalidSuite", "find_suites", "load_suite"]

CHECK_FACTS = frozenset({"diagnostics", "diagnostics_exact", "valid"})
"""What `expect` says about the document alone; everything else is about a run of it."""

DOCUMENTS = ("document", "document_file", "document_text")
ORIGIN = ("resource", "variables")
"""How a document is taken from a template, or what its placeholders stand for."""

NAME: Final = "case"
"""What an execution is called where its case does not say."""

SCRIPTED = ("agents", "resources", "mocks", "answers")
SURROUNDINGS = (
    *SCRIPTED,
    "tools",
    "buckets",
    "workflows",
    "files",
    "parameters",
    "prices",
    "pools",
    "memory",
)
DEFAULTS = (*DOCUMENTS, *ORIGIN, *SURROUNDINGS, "spec", "profile", "dialect", "reading", "clock")
"""What a suite may say once for all of its cases."""

USER_SUITES = (".asl-test.yaml", ".asl-test.yml", ".asl-test.json")
_OF_SUITES = ("suite", "cases", "id", "expect")
"""What a suite has, or a case alone, and an agents file has not."""
NOT_SUITES = (".asl.yaml", ".asl.yml", ".asl.json", ".schema.json")


class InvalidSuite(AslError):
    """A suite does not have the format; one line with file and line for each fault."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: a document, what it is given, and what must come of it.

    `document` is an object, also that of a template; `document_text` is there instead where the
    text itself matters, and for a plain `document_file`. `expect` holds patterns
    (`asl.core.json_patterns`) by the name of the fact.
    """

    id: str
    expect: Mapping[str, Json]
    title: str = ""
    spec: str = ""
    suite: str = ""
    document: Mapping[str, Json] | None = None
    document_text: str | None = None
    dialect: str = NATIVE
    reading: Mapping[str, Json] = field(default_factory=dict)
    profile: str = "default"
    input: Json = field(default_factory=dict)
    agents: Mapping[str, Json] = field(default_factory=dict)
    resources: Mapping[str, Json] = field(default_factory=dict)
    mocks: Mapping[str, Json] = field(default_factory=dict)
    tools: Mapping[str, Json] = field(default_factory=dict)
    buckets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    answers: Mapping[str, Json] = field(default_factory=dict)
    workflows: Mapping[str, Json] = field(default_factory=dict)
    files: Mapping[str, Json] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    prices: Mapping[str, Json] = field(default_factory=dict)
    pools: Mapping[str, Json] = field(default_factory=dict)
    memory: Sequence[str] = ()
    clock: str | None = None
    name: str | None = None
    requestor: str | None = None
    resume: tuple[Mapping[str, Json], ...] = ()
    tags: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    document_name: str = ""
    """The file of the document, where it has one of its own."""
    also: tuple[str, ...] = ()
    """Facts that an interpreter has to report although nothing is expected of them."""

    @property
    def location(self) -> str:
        """`file:line` of the case."""
        return f"{self.file}:{self.line}"

    @property
    def observe(self) -> list[str]:
        """The names of the facts that an interpreter has to report, sorted."""
        wanted = {_REPORTED_AS.get(name, name) for name in self.expect}
        if not wanted <= CHECK_FACTS:
            wanted |= {"status", *self.also}
        return sorted(wanted)

    def request(self) -> dict[str, Json]:
        """Return what an interpreter is asked, as a JSON object (conformance/README.md)."""
        request: dict[str, Json] = {
            "id": self.id,
            "observe": self.observe,
            "dialect": self.dialect,
            "profile": self.profile,
            "input": self.input,
        }
        if self.document is None:
            request["document_text"] = self.document_text
        else:
            request["document"] = self.document
        for key in (*SURROUNDINGS, "reading", "clock", "name", "requestor", "resume"):
            if value := getattr(self, key):
                request[key] = value
        return request


_REPORTED_AS = {
    "cost": "usage",
    "diagnostics_exact": "diagnostics",
    "events_exact": "events",
}


def load_suite(path: str | os.PathLike[str] | None = None) -> list[Case]:
    """Read the cases of a file, of every suite in a folder, or those that come with this library.

    Raises InvalidSuite for cases without the right form or with the same id, `InvalidDocument`
    for a file that is neither JSON nor YAML, `DocumentNotFound` for a missing one.
    """
    cases: dict[str, Case] = {}
    for file in find_suites(data_folder("conformance") if path is None else Path(path)):
        for case in _read(file):
            if case.id in cases:
                raise InvalidSuite(
                    f"{case.location}: the id {case.id!r} is already used at "
                    f"{cases[case.id].location}"
                )
            cases[case.id] = case
    return list(cases.values())


def find_suites(path: Path) -> list[Path]:
    """List the suite files at a path, in alphabetical order; raises InvalidSuite if none is there.

    In a folder these are the `*.asl-test.yaml|yml|json` files below it. Where there are none,
    every YAML and JSON file is a suite, except documents (`*.asl.*`) and schemas.
    """
    if not os.path.isdir(path):
        return [path]
    files = sorted(each for each in path.rglob("*") if each.suffix in (".yaml", ".yml", ".json"))
    found = [each for each in files if each.name.endswith(USER_SUITES)]
    found = found or [each for each in files if not each.name.endswith(NOT_SUITES)]
    if not found:
        raise InvalidSuite(f"{path}: there is no YAML or JSON file with cases in this folder")
    return found


def _read(file: Path) -> list[Case]:
    document = read_value(file)
    if is_workflow(document.value):
        raise InvalidSuite(
            f"{file}: this is a document, and no suite of cases: 'asl test init {file}' drafts one"
        )
    faults = list(_schema_faults(document))
    if faults and is_agents_file(document) and document.value.keys().isdisjoint(_OF_SUITES):
        raise InvalidSuite(
            f"{file}: this is an agents file, and no suite of cases: 'asl run DOC --agents {file}'"
            " uses it"
        )
    if faults:
        raise InvalidSuite("\n".join(faults))
    suite = document.value
    if "cases" not in suite:
        return [_case(suite, {}, "", document, file)]
    defaults = {key: suite[key] for key in DEFAULTS if key in suite}
    return [
        _case(case, defaults, f"/cases/{index}", document, file, suite["suite"])
        for index, case in enumerate(suite["cases"])
    ]


def _schema_faults(document: Document) -> Iterator[str]:
    errors = _validator().iter_errors(document.value)
    faults = (
        f"{_place(document, at)}: {pointer or 'the file'}: {message}"
        for error in sorted(errors, key=lambda error: list(map(str, error.absolute_path)))
        for pointer in ("".join(f"/{step}" for step in error.absolute_path),)
        for at, message in _messages(error, pointer)
    )
    with bounded_suggestions():  # a validator may name all that is missing, or one each
        found = dict.fromkeys(islice(faults, 2 * MAX_FAULTS))
    yield from [*found][:MAX_FAULTS]
    if len(found) > MAX_FAULTS:
        yield f"{document.source.name}: there are more faults"


def _messages(error: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Say in our words what is wrong, each with the pointer to where it is."""
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema["properties"]
        for name in [each for each in error.instance if each not in known]:
            hint = did_you_mean(name, known)
            told = f"there is no field {name!r} here" + (f" ({hint})" if hint else "")
            yield f"{pointer}/{escape(name)}", told
    elif error.validator == "required":
        for name in error.validator_value:
            if name not in error.instance:
                others = error.instance.keys() - error.schema.get("properties", {}).keys()
                hint = misspelt(name, others)
                yield pointer, f"the field {name!r} is missing" + (f" ({hint})" if hint else "")
    else:
        own = error.schema.get("x-message") if error.validator == "oneOf" else None
        yield pointer, str(own or error.message)


@cache
def _validator() -> Any:
    import json

    text = (data_folder("conformance") / "case.schema.json").read_text(encoding="utf-8")
    return jsonschema().Draft202012Validator(json.loads(text))


def _case(
    own: Mapping[str, Json],
    defaults: Mapping[str, Json],
    pointer: str,
    document: Document,
    file: Path,
    suite: str = "",
) -> Case:
    if any(key in own for key in DOCUMENTS):
        others = (*DOCUMENTS, "resource")
        defaults = {key: value for key, value in defaults.items() if key not in others}
    values = {**defaults, **own}
    line = document.locate(pointer).line or 0
    faults = list(_faults(values))
    if faults:
        place = _place(document, pointer)
        raise InvalidSuite("\n".join(f"{place}: {own['id']}: {fault}" for fault in faults))
    origin = {key: values.pop(key) for key in ORIGIN if key in values}
    if origin:
        values["document"] = _taken(values, origin, file.parent, f"{file}:{line}")
    elif "document_file" in values:
        path = file.parent / values["document_file"]
        text = _text(path, f"{file}:{line}")
        if _is_template(path):
            values["document"] = _taken(values, {}, file.parent, f"{file}:{line}")
        else:
            del values["document_file"]
            values["document_name"] = str(path)
            values["document_text"] = text
            values.setdefault("files", _imported(path, text))
    if "dialect" not in values:
        values["dialect"] = _dialect_of(values)
    for several in ("tags", "resume"):
        values[several] = tuple(values.get(several, ()))
    return Case(**values, suite=suite, file=str(file), line=line)


def _dialect_of(values: Mapping[str, Json]) -> str:
    """Return the name of the dialect of a case's document, by its shape."""
    text = values.get("document_text")
    try:
        return detect(dict(values["document"]) if text is None else text.encode())
    except InvalidDocument:  # that will be what the case tests
        return NATIVE


def _faults(values: Mapping[str, Json]) -> Iterator[str]:
    """Say what the schema cannot."""
    if sum(key in values for key in DOCUMENTS) != 1:
        yield f"exactly one of {', '.join(DOCUMENTS)} is needed"
    for key in SCRIPTED:
        for name, script in values.get(key, {}).items():
            try:
                check_script(script, f"{key}.{name}")
            except AslError as error:
                yield str(error)
    for name, tool in values.get("tools", {}).items():
        try:
            check_script(tool.get("agent", tool), f"tools.{name}")
        except AslError as error:
            yield str(error)
    if "clock" in values:
        try:
            parse_timestamp(values["clock"])
        except ExpressionFault as fault:
            yield f"clock: {fault}"


def _taken(
    values: dict[str, Json], origin: Mapping[str, Json], folder: Path, where: str
) -> Mapping[str, Json]:
    """The document of a template, or one with placeholders; its own field is taken away."""
    from asl.sources import load

    (field,) = (key for key in DOCUMENTS if key in values)
    what = values.pop(field)
    if field != "document":
        what = folder / what if field == "document_file" else what.encode()
    try:
        document: Mapping[str, Json] = load(what, **origin).value
    except AslError as error:
        raise InvalidSuite(f"{where}: {error}") from error
    return document


def _is_template(path: Path) -> bool:
    from asl.sources import is_template

    try:
        return is_template(path)
    except InvalidDocument:  # that will be what the case tests
        return False


def _text(path: Path, where: str) -> str:
    try:
        return contents(str(path)).decode()
    except (DocumentNotFound, UnicodeDecodeError) as error:
        raise InvalidSuite(f"{where}: document_file: {error}") from error


def _imported(path: Path, text: str) -> Mapping[str, Json]:
    """Return the files that a document imports, by their ways from its folder."""
    if "Imports" not in text:
        return {}
    try:
        document = load(path)
    except InvalidDocument:  # that will be what the case tests
        return {}
    return {
        Path(os.path.relpath(source.name, path.parent)).as_posix(): source.text
        for source in document.sources.values()
        if source.name is not None and source.text is not None
    }


def _place(document: Document, pointer: str) -> str:
    place = document.locate(pointer)
    return f"{document.source.name}:{place.line}:{place.column}"
