"""A field has an effect: there is a case that fails where it is left out, or says otherwise.

That a field is mentioned in a case shows nothing. So the cases are run with documents from which
one field is gone; what changes nothing anywhere is a field that is ignored.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from asl.conformance.case import CHECK_FACTS, Case
from asl.conformance.local import LocalImplementation
from asl.conformance.runner import run_case
from asl.states.blocks import BLOCKS
from asl.states.schemas import foreign_fields
from tests.bundled import bundled

Json = Any
Way = tuple[str | int, ...]
Field = tuple[str, str, str]
"""The type of the state (`document` for that of the document, `state` where all have the same), the
block, and the way to a field within it: `Alerts/*/At`."""
ROOT = Path(__file__).resolve().parents[2]
CASES = [case for case in bundled("blocks") if not case.expect.keys() <= CHECK_FACTS]
HERE = LocalImplementation()
FREE = ("Parameters", "Arguments", "ResultSelector", "Result", "ItemSelector", "Output", "Assign")
"""What holds no states."""


REFUSED = {("document", "Memory", "Connection")}
"""What nothing here can carry out, so that it is refused (`EXEC-02`)."""
SILENT = {
    ("document", "Metadata", ""): "has no effect but for who reads it",
    ("Task", "Tools", "FileSystem/MaxFileSize"): "of real files: tests/tools",
    ("Task", "Tools", "Sandboxed"): "of real processes: tests/tools/test_sandbox.py",
}
"""What has no effect on a run, or none that scripted agents can show, and why."""
SANDBOX = "Sandbox"
"""The field whose effects are those of real processes: tests/tools/test_sandbox.py."""


# The fields that there are


@cache
def schema(name: str) -> Json:
    return json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))


def described(part: Json, name: str) -> Iterator[tuple[Json, str]]:
    """Yield the schemas in which one consists, each with the file in which it stands."""
    if not isinstance(part, dict):
        return
    yield part, name
    if "$ref" in part:
        urn, _, pointer = part["$ref"].partition("#")
        file = urn.removeprefix("urn:asl:schema:").replace(":", "/") if urn else name
        inner = schema(file)
        for step in filter(None, pointer.split("/")):
            inner = inner[step]
        yield from described(inner, file)
    for word in ("anyOf", "oneOf", "allOf"):
        for each in part.get(word, ()):
            yield from described(each, name)


def fields(part: Json, name: str, way: str = "") -> Iterator[tuple[str, list[Json]]]:
    """Yield the ways to all fields that a schema describes, each with the values that it names."""
    for each, file in described(part, name):
        for key, inner in each.get("properties", {}).items():
            here = f"{way}/{key.removesuffix('.$')}"
            values = [value for one, _ in described(inner, file) for value in one.get("enum", ())]
            yield here[1:], values
            yield from fields(inner, file, here)
        for word in ("items", "additionalProperties"):
            yield from fields(each.get(word), file, f"{way}/*")


def level(kind: str, block: str) -> str:
    """Return for which states a block means the same."""
    return "state" if block == "Events" and kind != "document" else kind


def row(kind: str, block: str, way: str) -> Field:
    """Return what a field of a state of this type is called here.

    `DefaultTools` is what the blocks `Tools` are laid over, as a whole and by one function.
    """
    if block == "DefaultTools" and way:
        kind, block = "Task", "Tools"
    return level(kind, block), block, way


def every_field() -> dict[Field, list[Json]]:
    """Return all fields of all blocks, with the values that their schemas name."""
    found: dict[Field, list[Json]] = {}
    kinds = sorted(path.name.partition(".")[0] for path in (ROOT / "schemas" / "states").iterdir())
    for kind, file in [("document", "asl"), *((kind, f"states/{kind}") for kind in kinds)]:
        for key, part in schema(file)["properties"].items():
            block = key.removesuffix(".$")
            if block not in BLOCKS:
                continue
            found[row(kind, block, "")] = []
            for way, values in fields(part, file):
                of_state = block == "Progress" and kind != "document"
                others = foreign_fields("blocks:Progress", kind) if of_state else frozenset()
                if way.partition("/")[0] not in others:
                    found.setdefault(row(kind, block, way), []).extend(values)
    return found


FIELDS = every_field()


# The fields that stand in cases


def blocks(value: Json, way: Way = ()) -> Iterator[tuple[str, Json, Way]]:
    """Yield the states and documents within a value that may have blocks: type, value, way."""
    if isinstance(value, dict):
        if "States" in value:
            yield "document", value, way
        elif "Type" in value:
            yield str(value["Type"]), value, way
        for key, part in value.items():
            if key not in FREE:
                yield from blocks(part, (*way, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from blocks(part, (*way, index))


def places(value: Json, way: Way, name: str = "") -> Iterator[tuple[str, Way]]:
    """Yield what is within a block: the way as a schema has it, and as the document has it."""
    yield name, way
    if isinstance(value, dict):
        for key, part in value.items():
            for step in {key.removesuffix(".$"), "*"}:
                yield from places(part, (*way, key), f"{name}/{step}" if name else step)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from places(part, (*way, index), f"{name}/*" if name else "*")


def at(value: Json, way: Way) -> Json:
    for step in way:
        value = value[step]
    return value


def documents(case: Case) -> Iterator[Way]:
    """Yield the ways to the documents of a case."""
    if case.document is not None:
        yield ("document",)
    yield from (("workflows", name) for name in case.workflows)
    yield from (("files", name) for name in case.files)


def found() -> dict[Field, list[tuple[Case, Way, Way]]]:
    """Return where each field stands: the case, the document in it, the way."""
    known: dict[Field, list[tuple[Case, Way, Way]]] = defaultdict(list)
    for case in CASES:
        for document in documents(case):
            whole = at(vars_of(case), document)
            for kind, holder, way in blocks(whole):
                for key, part in holder.items():
                    block = key.removesuffix(".$")
                    if block in BLOCKS:
                        for name, place in places(part, (*way, key)):
                            field = row(kind, block, name)
                            if field in FIELDS:
                                known[field].append((case, document, place))
    return known


def vars_of(case: Case) -> dict[str, Json]:
    return {name: getattr(case, name) for name in ("document", "workflows", "files")}


WHERE = found()


# Taking them away


def changed(case: Case, document: Way, place: Way, *value: Json) -> Case:
    """Return a case without a field, or with another value of it."""
    parts = deepcopy(vars_of(case))
    holder = at(parts, (*document, *place[:-1]))
    if value:
        holder[place[-1]] = value[0]
    else:
        del holder[place[-1]]
    return replace(case, **parts)


def names(value: Json) -> Iterator[str]:
    """Yield what the members of objects that hold objects are called."""
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, dict):
                yield key
                yield from names(part)


def others(value: Json, named: list[Json], document: Json) -> Iterator[Json]:
    """Yield other values than this one: those that the schema names first."""
    yield from (each for each in named if each != value)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value * 7 + 1, 0, value / 2)
    elif isinstance(value, str) and value.startswith("$."):
        yield from ("$.nowhere_at_all", "$$.Execution.Name")
    elif isinstance(value, str):
        yield from (f"{value}x", "99s", "0.000001", "Always", *names(document))
    elif isinstance(value, list):
        yield from (value[1:], [f"{each}x" for each in value])
    elif isinstance(value, dict):
        yield {}


def matters(case: Case) -> bool:
    """Whether a case runs and does not come to what it expects."""
    verdict = run_case(case, HERE)
    seen: Mapping[str, Json] = verdict.observation
    refused = "InvalidDocument" in seen.get("crash", "")  # a workflow that the case starts
    assert refused or "crash" not in seen, (case.id, verdict.reasons)
    return verdict.outcome == "failed" and "status" in seen


def has_effect(field: Field) -> bool:
    """Whether a case fails without the field; one that must be there may say something else."""
    known = WHERE[field]
    if any(matters(changed(*each)) for each in known):
        return True
    return any(
        matters(changed(case, document, place, other))
        for case, document, place in known
        for whole in [at(vars_of(case), document)]
        for other in others(at(whole, place), FIELDS[field], whole)
    )


SHOWN = sorted(
    field
    for field in FIELDS
    if field not in REFUSED | SILENT.keys() and field[2].partition("/")[0] != SANDBOX
)


@pytest.mark.parametrize("field", SHOWN, ids="-".join)
def test_a_field_that_is_left_out_is_missed(field: Field) -> None:
    """Some case does not come to what it expects without it."""
    assert has_effect(field)


VALUES_ALIKE = {
    ("Pass", "Memory", "Type"): "must agree with the form of Read, which says the same",
    ("Task", "Memory", "Type"): "the same",
    ("Task", "Guardrails", "Input/Rules/*/Action", "retry"): "is refused there (V-GRD-04)",
    ("Task", "Tools", "Audit/LogLevel", "minimal"): "leaves out what no case can miss: tests/tools",
}
"""Values, or all of a field, that can have no effect of their own, and why."""


def named() -> Iterator[tuple[Field, Json]]:
    """Yield the values that schemas name: budgets mean the same in all types of states."""
    for field in SHOWN:
        if field[1] != "Budget" or field[0] in ("document", "Task"):
            for value in dict.fromkeys(FIELDS[field]):
                if not {field, (*field, value)} & VALUES_ALIKE.keys():
                    yield field, value


def of_field(field: Field) -> list[tuple[Case, Way, Way]]:
    """Return where a field stands; a budget in any type of state."""
    if field[:2] == ("Task", "Budget"):
        kinds = ("Task", "Debate", "Map", "Parallel")
        return [each for kind in kinds for each in WHERE[(kind, *field[1:])]]
    return WHERE[field]


NAMED = list(named())


@pytest.mark.parametrize(
    ("field", "value"), NAMED, ids=["-".join((*field, str(value))) for field, value in NAMED]
)
def test_every_value_that_a_field_names_has_an_effect(field: Field, value: Json) -> None:
    """Some case has the value and does not come to what it expects with another one."""
    known = [each for each in of_field(field) if at(vars_of(each[0]), each[1] + each[2]) == value]
    assert any(
        run_case(changed(*each, other), HERE).outcome == "failed"
        for each in reversed(known)
        for other in FIELDS[field]
        if other != value
    )


@pytest.mark.parametrize("field", sorted(REFUSED | SILENT.keys()), ids="-".join)
def test_what_has_no_effect_is_known(field: Field) -> None:
    """The tables above name fields that there are, and none that has an effect after all."""
    assert field in FIELDS
    assert not has_effect(field)


def test_a_field_that_is_ignored_is_found() -> None:
    """A field that stands in cases and changes nothing in them does not pass."""
    field = "Task", "Metadata", "ignored"
    case = next(case for case in CASES if case.id == "budget/within")
    document = deepcopy(case.document)
    assert document is not None
    document["States"]["A"]["Metadata"] = {"ignored": 1}
    WHERE[field] = [
        (replace(case, document=document), ("document",), ("States", "A", "Metadata", "ignored"))
    ]
    FIELDS[field] = []
    assert not has_effect(field)
