"""Conversion of documents to other languages, with a report of the losses."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from asl.core.codes import lookup
from asl.core.diagnostics import Finding, InvalidDocument, Report, Severity, place
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.pointers import escape, resolve_pointer
from asl.core.printable import is_printable
from asl.core.values import Json, excerpt
from asl.dialects import agent_definitions
from asl.dialects.base import Conversion, Dialect
from asl.dialects.coverage import write
from asl.dialects.own_parts import remove_own_parts
from asl.dialects.registry import NATIVE, check_options, dialect, namespace_of, origin_of
from asl.dialects.terms.expansion import expand_functions
from asl.states.machines import nested_machines

__all__ = ["convert_document", "expand_meanings", "open_parts", "part_descriptions"]

_PARTS: Final = (
    *("Branches", "Choices", "Retry", "Catch", "Options", "Consensus", "Communication"),
    *("ItemProcessor", "Iterator"),
)
"""The fields of states whose members the writers of other languages read."""


def open_parts(machine: Mapping[str, Any], pointer: str = "") -> Iterator[str]:
    """Yield the places of states, machines, rules and handlers that are template parameters."""
    states = machine["States"]
    if type(states) is not dict:
        yield f"{pointer}/States"
        return
    for name, state in states.items():
        place = f"{pointer}/States/{escape(name)}"
        if type(state) is not dict or _is_open(state["Type"]):
            yield place
            continue
        yield from (f"{place}/{field}" for field in _PARTS if _is_open(state.get(field)))
        for steps, inner in nested_machines(state):
            yield from open_parts(inner, place + "".join(f"/{step}" for step in steps))


def _is_open(value: Any) -> bool:
    parts = value if type(value) is list else (value,)
    return any(type(part) is str and "{{" in part for part in parts)


def expand_meanings(document: Document) -> Json:
    """Return the machine of a document with meanings in place of the functions of its dialect.

    A native document, and one with errors, is returned unchanged.
    """
    from asl.checks import check

    if not _convertible(document, check(document)):
        return document.composed_value
    meanings = dialect(document.dialect).meanings()
    return expand_functions(document.composed_value, meanings, lambda pointer, source: None)


def part_descriptions(document: Document) -> Callable[[Mapping[str, Json], str], str | None]:
    """Return a function that describes a state or a choice rule in terms of its language.

    For a converted document that is the language that it was read from.
    """
    describe = origin_of(document).describe_part
    origins = document.composition.origins if document.composition is not None else {}

    def said(part: Mapping[str, Json], pointer: str) -> str | None:
        source, at = origins.get(pointer, (None, ""))
        return describe(part, None if source is None else resolve_pointer(source.value, at))

    return said


def _convertible(document: Document, report: Report) -> bool:
    """Whether the only errors of a document are names of missing states or files."""
    return all(
        each.code in ELSEWHERE
        and (
            each.code != "V-ST-03"
            or type(resolve_pointer(document.composed_value, each.pointer)) is str
        )
        for each in report.errors
    )


def _missing_targets(report: Report) -> Iterator[Finding]:
    """Yield a loss for each transition to a state that does not exist."""
    for each in report.errors:
        if each.code == "V-ST-03":
            instead = "the machine ends there"
            yield Finding("L-TARGET", each.message, each.pointer, instead)


ELSEWHERE: Final = frozenset(("V-ST-03", "V-TOP-11", "V-IMP-01"))
"""Errors that do not prevent a conversion: a state or a file is missing."""


def convert_document(
    document: Document, to: str, writing: Mapping[str, Any] | None = None
) -> Conversion:
    """Convert a document to another dialect.

    Args:
        document: The document.
        to: Name of the target dialect.
        writing: Options of the writer of the target dialect.

    Returns:
        The conversion, with its losses.

    Raises:
        AslError: The dialect or an option is unknown, the document is a module or a template with
            open parameters, or a file that it imports is not in its folder or below.
        InvalidDocument: The document has errors other than missing states or files.
    """
    from asl.checks import check, require_values

    target = dialect(to)
    check_options(target, "written", writing or {}, target.write_options)
    report = check(document)
    if not _convertible(document, report):
        raise InvalidDocument(report)
    if to not in (NATIVE, document.dialect):
        require_values(document)
    if document.composed_value.get("Module") is True and to not in (NATIVE, document.dialect):
        raise AslError("a module has no machine of its own: convert a document that includes it")
    if document.composed_value.get("Parameters") and to not in (NATIVE, document.dialect):
        _filled(document)
    lost = (
        []
        if document.dialect in (NATIVE, to)
        else [*dialect(document.dialect).source_losses(document)]
    )
    portable = document
    left_out: list[Finding] = []
    if to not in (NATIVE, document.dialect, (source := _source(document)).name):
        own = _of_models(source.meaning_losses(document), target)
        left_out += own if document.dialect != NATIVE else _within_metadata(own, source)
        value = source.portable_value(document, target.takes_prompts)
        portable = replace(
            document,
            value=remove_own_parts(value, namespace_of(source)),
            dialect=source.name,
        )
    definitions = agent_definitions(document.value)
    known = {
        name: each.prompt for name, each in definitions.items() if each.prompt not in ("", name)
    }
    prompts = {"prompts": known} if target.takes_prompts else {}
    agents = {"agents": definitions} if target.takes_agents else {}
    if to not in (NATIVE, document.dialect):
        lost += _missing_targets(report)
    written = write(target, portable, **(writing or {}), **prompts, **agents)
    for path in written.files:
        _require_inside(path)
    given = (written.given,) if written.given else ()
    if to != NATIVE:  # nothing is kept there
        reports = target.takes_prompts or target.takes_agents
        listed = (each for each in lost if each.code != "L-ACTOR" or not reports)
        lost = [each._replace(hint=None) for each in listed]
    once = {each.code for each in left_out} & {"L-MISSING"}
    others = (each for each in written.losses if each.code not in once)
    losses = map(_advised, (*lost, *given, *left_out, *others))
    report = replace(place(document, losses, by_cause=True), document=document)
    return Conversion(written.text, written.value, report, to, written.files)


def _source(document: Document) -> Dialect:
    """Return the dialect whose functions a document uses.

    That is the one that a native document was read from, unless it has been changed since.
    """
    origin = origin_of(document)
    if origin.name in (NATIVE, document.dialect):
        return origin
    options = {"prompts": origin.takes_prompts, "agents": origin.takes_agents}
    given: dict[str, Any] = {name: {} for name, taken in options.items() if taken}
    return origin if write(origin, document, **given).restored else dialect(NATIVE)


def _within_metadata(losses: Iterable[Finding], source: Dialect) -> Iterator[Finding]:
    """Yield losses about the original that a native document has in its `Metadata`."""
    for each in losses:
        yield each._replace(pointer=f"/Metadata/{namespace_of(source)}", related=())


def _of_models(losses: Iterable[Finding], target: Dialect) -> Iterator[Finding]:
    """Yield losses, those of settings of models as the target language has them.

    A language that defines no agents is given them with the prompt; one that takes the definitions
    of agents has them there.
    """
    for each in losses:
        if each.code != "L-MODEL" or (target.takes_prompts and not target.takes_agents):
            yield each
        elif target.takes_agents:
            instead = "they are in the definition of the agent"
            yield each._replace(severity=Severity.INFO, hint=instead)


def _require_inside(path: str) -> None:
    """Check the path of a further file, which the document chooses.

    Raises:
        AslError: It leads out of the folder of the document, or cannot be printed.
    """
    leads_out = os.path.isabs(path) or ".." in path.split("/") or os.path.splitdrive(path)[0]
    if leads_out or "\\" in path or not is_printable(path):
        raise AslError(
            f"the document imports {excerpt(path, 100)}, which is not in its folder or below: move "
            "the file there"
        )


def _filled(document: Document) -> None:
    """Raise AslError if a part of a template depends on the values of its parameters."""
    for pointer in open_parts(document.composed_value):
        message = (
            f"there is a parameter at {pointer}: give it a value before converting the template"
        )
        raise AslError(message)


def _advised(loss: Finding) -> Finding:
    """Return a loss with a hint, by default that of its code."""
    return loss if loss.hint else loss._replace(hint=lookup(loss.code).hint)
