"""Documents in other languages than the one they are written in, and what is lost by that."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from asl.core.codes import lookup
from asl.core.diagnostics import Finding, InvalidDocument, Report, place
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.pointers import escape, resolve_pointer
from asl.core.values import Json
from asl.dialects.base import Conversion
from asl.dialects.choice_rules import simplify
from asl.dialects.coverage import write
from asl.dialects.jsonpath_form import JsonPathForm
from asl.dialects.registry import NATIVE, check_options, dialect
from asl.states.machines import nested_machines

__all__ = ["convert_document", "open_parts", "part_descriptions", "plain_machine"]

_PARTS: Final = (
    *("Branches", "Choices", "Retry", "Catch", "Options", "Consensus", "Communication"),
    *("ItemProcessor", "Iterator"),
)
"""The fields of states whose members are read by whoever writes a state in another language."""


def open_parts(machine: Mapping[str, Any], pointer: str = "") -> Iterator[str]:
    """Yield the places of states, machines, rules and handlers that only a parameter knows."""
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


def plain_machine(document: Document) -> Json:
    """Return the machine of a document in plain JSONPath, as the writers of other languages get it.

    That of a native document, and of one with errors, is as it stands.
    """
    from asl.checks import check

    plain = dialect(document.dialect).plain
    if plain is None or not _convertible(document, check(document)):
        return document.whole
    machine, _ = plain(document)
    return machine


def part_descriptions(document: Document) -> Callable[[Mapping[str, Json], str], str | None]:
    """Return what tells a state or a choice rule, by its JSON Pointer, in its language's words."""
    words = dialect(document.dialect).words
    origins = document.composition.origins if document.composition is not None else {}

    def said(part: Mapping[str, Json], pointer: str) -> str | None:
        source, at = origins.get(pointer, (None, ""))
        return words(part, None if source is None else resolve_pointer(source.value, at))

    return said


def _convertible(document: Document, report: Report) -> bool:
    """Whether nothing is wrong with a document but that something is not there that it names."""
    return all(
        each.code in ELSEWHERE
        and (each.code != "V-ST-03" or type(resolve_pointer(document.whole, each.pointer)) is str)
        for each in report.errors
    )


ELSEWHERE: Final = frozenset(("V-ST-03", "V-TOP-11", "V-IMP-01"))
"""The errors that a document may have and be converted: a state or a file is not there."""


def convert_document(
    document: Document, to: str, writing: Mapping[str, Any] | None = None
) -> Conversion:
    """Return a document in another dialect, with what is lost on the way.

    `writing` are options of the dialect's writer. Raises AslError if there is no such dialect, and
    for an option that it does not have; InvalidDocument for a document with
    other errors than that something is not there.
    """
    from asl.checks import check

    target = dialect(to)
    check_options(target, "written", writing or {}, target.writing)
    report = check(document)
    if not _convertible(document, report):
        raise InvalidDocument(report)
    if document.whole.get("Module") is True and to not in (NATIVE, document.dialect):
        raise AslError("a module has no machine of its own: convert a document that includes it")
    if document.whole.get("Parameters") and to not in (NATIVE, document.dialect):
        _filled(document)
    lost = [] if document.dialect in (NATIVE, to) else [*dialect(document.dialect).lost(document)]
    said = document
    made = JsonPathForm()
    plain = dialect(document.dialect).plain if to not in (NATIVE, document.dialect) else None
    if plain is not None:
        machine, made = plain(document)
        simplify(machine)
        said = replace(document, value=machine, dialect=NATIVE)
    prompts = {"prompts": made.prompts} if target.defining else {}
    written = write(target, said, **(writing or {}), **prompts)
    given = (made.placed(written.given),) if written.given else tuple(filter(None, (made.given,)))
    if to != NATIVE:  # nothing is kept there
        listed = (each for each in lost if each.code != "L-ACTOR" or not target.defining)
        lost = [each._replace(hint=None) for each in listed]
    once = {each.code for each in made.losses} & {"L-MISSING"}
    others = (made.placed(each) for each in written.losses if each.code not in once)
    losses = map(_advised, (*lost, *given, *made.losses, *others))
    report = place(document, losses)
    # What stands for several states of the document is told once.
    report = replace(report, diagnostics=tuple(dict.fromkeys(report)), document=document)
    return Conversion(written.text, written.value, report, to, written.files)


def _filled(document: Document) -> None:
    """Raise AslError if what stands in a template is known only with its parameters."""
    for pointer in open_parts(document.whole):
        message = (
            f"a parameter stands at {pointer}: give it a value before the template is converted"
        )
        raise AslError(message)


def _advised(loss: Finding) -> Finding:
    """Return a loss with what to do about it."""
    return loss if loss.hint else loss._replace(hint=lookup(loss.code).hint)
