"""The law of conversions: with `ok`, path and outputs are those of the source.

A document and its conversion run with the same scripted agents. A report with an error excuses
everything; a warning or a piece of information only what its code names (`changes` in the
catalogues of codes), at its place, and never the path or the status.

`python -m tests.dialects.law` prints how many documents break it, by pair and by kind.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import asl
from asl.core.codes import lookup
from asl.core.document import Document
from asl.core.values import compact, json_equal
from asl.dialects import load
from tests.dialects.behaviour import (
    Part,
    Places,
    Script,
    Seen,
    adapted,
    differences,
    each_loss,
    observe,
    scripted,
    told_apart,
)
from tests.dialects.corpora import PRESENT, corpus
from tests.dialects.generated import GENERATED, INPUTS, Draw

__all__ = ["PAIRS", "Violation", "violations"]

Json = Any
ANSWERS: Final[tuple[Json, ...]] = (
    *("yes", "no", "", "a b", 7, 0.5, True, None, ["x"]),
    *({"kind": "a", "n": 7}, {"kind": "b", "n": 2, "text": "two words"}, {"kind": 3}, {"n": "7"}),
)
SCRIPTS: Final[tuple[Script, ...]] = (
    scripted(0, [*ANSWERS]),
    scripted(1, [*ANSWERS]),
    scripted(2, ["yes", "no", "a", "a b"], failing=0),
    scripted(3, ["yes", 7, "a"], failing=0.3),
    told_apart,
)
PAIRS: Final = [(one, other) for one in GENERATED for other in GENERATED if one != other]


class Violation(NamedTuple):
    """A difference that no loss at its place names."""

    document: str
    kind: str


@dataclass(frozen=True)
class Case:
    """A document, and an input that it may be run with."""

    name: str
    document: Document
    input: Json
    reading: Mapping[str, Json]


# --------------------------------------------------------------------------------------------
# Documents


def cases(source: str, each: int, count: int) -> Iterator[Case]:
    """Yield documents of a language.

    Args:
        source: The language.
        each: One document of so many of the corpora and the conformance cases is taken.
        count: How many random documents are made.
    """
    for name, document in [*corpus(source).items()][::each] if PRESENT else ():
        yield Case(name, document, INPUTS[source][0], {})
    yield from _conformance(source, each)
    for seed in range(count):
        yield from _generated(source, seed)


def _conformance(source: str, each: int) -> Iterator[Case]:
    from tests.dialects.test_converted_cases import documents

    found = documents(1 if each == 1 else 7)
    listed = [one for one in found if one[1].dialect == source]
    for case, document in listed[::each]:
        yield Case(case.id, document, case.input, case.reading)


def _generated(source: str, seed: int) -> Iterator[Case]:
    draw = Draw(f"{source}:{seed}:0")
    made = GENERATED[source](draw)
    document = load(made.document, dialect=source, files=made.files)
    if asl.check(document).ok:
        yield Case(f"generated {seed}", document, draw.choice(INPUTS[source]), {})


# --------------------------------------------------------------------------------------------
# Runs


def violations(source: str, target: str, each: int, count: int) -> Iterator[Violation]:
    """Yield the first violation of each document."""
    for case in cases(source, each, count):
        found = _violation(case, target)
        if found is not None:
            yield Violation(case.name, found)


def _violation(case: Case, target: str) -> str | None:
    try:
        conversion = asl.convert(case.document, target)
    except asl.InvalidDocument:
        return None  # nothing is written
    if not conversion.ok:
        return None
    there = load(conversion.text, dialect=target, files=conversion.files, reading={})
    if not asl.check(there).ok:
        return "invalid"
    input = case.input
    if target == "codemie" and not isinstance(input, dict):
        input = {"text": input}
    places = Places(case.document)
    for script in SCRIPTS:
        try:
            before = observe(case.document, input, script)
            if _misses(before):
                continue
            after = observe(there, adapted(input, conversion), script)
        except asl.AslError:
            continue  # it needs what only its own case has
        for part in sorted(_differences(before, after, case.document.dialect, target)):
            if not any(_names(loss, part, before, places) for loss in each_loss(conversion.losses)):
                return part.kind
    return None


def _misses(seen: Seen) -> bool:
    """Whether a value was missing that the source reads: of such runs `ok` promises nothing."""
    return "stumbled" in seen.happened or any("{{" in compact(each) for each in seen.given)


def _differences(before: Seen, after: Seen, source: str, target: str) -> Iterator[Part]:
    """Yield what differs: `path`, `status`, `error`, `time`, `payload` or `output`."""
    for part in differences(before, after, source, target):
        match part.kind:
            case "asked":
                yield Part("path", part.at)
            case "order" | "time":
                yield Part("time", str(part.at))
            case "given":
                pass  # compared below
            case "status" | "error":
                yield part
            case _:
                yield Part("output", part.at)
    for index, (one, other) in enumerate(zip(before.given, after.given, strict=False)):
        if before.asked[index] != after.asked[index]:
            return
        if not same_payload(received(one, source), received(other, target)):
            yield Part("payload", index)


def _names(loss: asl.Diagnostic, part: Part, before: Seen, places: Places) -> bool:
    """Whether a loss names what differs, at the place of the loss."""
    changes = lookup(loss.code).changes
    if part.kind == "output":
        return "output" in changes or ("value" in changes and places.written(loss, str(part.at)))
    if part.kind != "payload":
        return part.kind in changes
    states = places(loss)
    if "payload" in changes:
        agents = {agent for name in states for agent in places.agents[name]}
        if not states or before.asked[int(part.at)] in agents:
            return True
    return bool({"value", "output"} & {*changes}) and _entered(states, int(part.at), before)


def _entered(states: frozenset[str], question: int, before: Seen) -> bool:
    """Whether one of the states was entered before a question, so that its value may be read."""
    return not states or any(
        name in before.entered and before.entered[name][1] <= question for name in states
    )


# --------------------------------------------------------------------------------------------
# What an agent gets


def received(payload: Json, dialect: str) -> Json:
    """Return what an agent gets to work with, without what its platform hands it beside that."""
    if not isinstance(payload, dict):
        return payload
    if dialect == "flujo" and payload.keys() == {"input", "context"}:
        return payload["input"]
    if dialect == "contenox" and "provider" in payload:
        args = payload.get("args") or {}
        return {**args, "input": payload.get("input")} if args else payload.get("input")
    return {key: each for key, each in payload.items() if key not in ("history", "provider")}


def same_payload(one: Json, other: Json) -> bool:
    """Whether two payloads hold the same values, one of them perhaps as a text.

    A value within a text is one that stands alone there: a text that shows a list does not hold its
    items, nor one that shows an object its members.
    """
    if json_equal(one, other) or json_equal(_bare(one), _bare(other)):
        return True
    wanted, found = [*_of_text(one)] if isinstance(one, str) else [one], [*_shown(other)]
    words = " ".join(each for each in found if isinstance(each, str))
    return all(_holds(found, words, each) for each in wanted)


def _bare(value: Json) -> Json:
    """Return the only member of an object, and a text that is JSON as what it says."""
    if isinstance(value, dict) and len(value) == 1:
        return _bare(next(iter(value.values())))
    parts = [*_shown(value)] if isinstance(value, str) else []
    return parts[0] if len(parts) == 1 else value


def _shown(value: Json) -> Iterator[Json]:
    """Yield the values that a payload shows: members of objects, and what stands in texts."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _shown(each)
    elif isinstance(value, str):
        yield from _of_text(value)
    else:
        yield value


def _of_text(text: str) -> Iterator[Json]:
    """Yield the parts of a text: JSON arrays and objects in it as values, the rest as texts."""
    start, at = 0, 0
    while at < len(text):
        if text[at] in "[{":
            try:
                value, end = json.JSONDecoder().raw_decode(text, at)
            except ValueError:
                pass
            else:
                if text[start:at].strip():
                    yield text[start:at].strip()
                yield value
                start = at = end
                continue
        at += 1
    if text[start:].strip():
        yield text[start:].strip()


def _holds(found: list[Json], words: str, value: Json) -> bool:
    """Whether values, or the words among them, hold a value."""
    if any(json_equal(value, each) for each in found):
        return True
    if isinstance(value, dict | list):
        return isinstance(value, dict) and all(_holds(found, words, e) for e in value.values())
    text = value if isinstance(value, str) else compact(value)
    ways = {text, str(value)} | ({"<nil>", "None", "null", ""} if value is None else set())
    return any(_stands_in(way, words) for way in ways)


def _stands_in(text: str, words: str) -> bool:
    """Whether a text stands in others, not as a part of a word."""
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", words) is not None


def counts(each: int, count: int) -> dict[tuple[str, str], Counter[str]]:
    """Return the kinds of violations of every pair."""
    return {pair: Counter(found.kind for found in violations(*pair, each, count)) for pair in PAIRS}


if __name__ == "__main__":
    each, count = map(int, sys.argv[1:3])
    for pair in PAIRS:
        listed = [*violations(*pair, each, count)]
        kinds = Counter(found.kind for found in listed)
        print(pair, sum(kinds.values()), dict(kinds), [f.document for f in listed][:4], flush=True)
