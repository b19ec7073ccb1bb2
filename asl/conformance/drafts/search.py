"""What an execution must be given to go a way, looked for by trying.

What the document says plainly (`ways`) is where it begins. Where an execution
leaves the way, what was answered before, the last answer first, and in the end the input are set to
values that the states there speak of, until one leads further.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from asl.conformance.drafts.facts import Place
from asl.conformance.drafts.paths import DraftStep, RunInputs, WorkflowPath, tasks_of
from asl.core.values import Json, compact
from asl.engine.result import Result

__all__ = ["MORE_STEPS", "Attempts", "SearchResult", "search"]

STEPS: Final = 2_500
"""Steps of all attempts for one way from one beginning."""
ALL_STEPS: Final = 10_000
"""Steps of all attempts for a document, after which each way is tried as it begins."""
MORE_STEPS: Final = 10_000
"""Steps of those attempts, after which no further way is tried."""
ATTEMPT: Final = 4
"""Steps of an attempt, plus one for each state that it enters."""


class Attempts:
    """Runs what is tried, and counts the steps that this may still take."""

    def __init__(self, run: Callable[[RunInputs], "Result"], steps: int = ALL_STEPS) -> None:
        self.run = run
        self.left = steps

    def __call__(self, given: RunInputs) -> "Result":
        """Return what comes of an input and answers."""
        result = self.run(given)
        self.left -= ATTEMPT + len(result.visited)
        return result


class SearchResult(NamedTuple):
    """What leads furthest, and what came of it."""

    given: RunInputs
    result: "Result"
    reached: int
    """How many states of the way were entered."""
    taken: bool


def search(
    machine: Mapping[str, Json],
    way: WorkflowPath,
    begins: Iterable[RunInputs],
    samples: Sequence[Json],
    attempt: Attempts,
) -> SearchResult:
    """Return what leads through a way, or as far as anything was found to lead.

    It is looked for from each of *begins*, which are not none, with values that the states speak of
    and with *samples* ones. Only so many executions are tried.
    """
    found: list[SearchResult] = []
    for given in begins:
        found.append(_further(machine, way, given, samples, attempt))
        if found[-1].taken:
            break
    return max(found, key=lambda each: (each.taken, each.reached))


def _further(
    machine: Mapping[str, Json],
    way: WorkflowPath,
    given: RunInputs,
    samples: Sequence[Json],
    attempt: Attempts,
) -> SearchResult:
    """Change the inputs step by step, each change leading further than the one before.

    Where none does, one leads on after which something else is in the way.
    """
    best = SearchResult(given, attempt(given), 0, False)
    reached = _reached(way, best.result)
    at, seen, least = best, {best.result.cause}, max(0, attempt.left - STEPS)
    while reached[0] and attempt.left > least and not _is_taken(machine, way, at.result):
        other: SearchResult | None = None
        for changed in _changes(machine, way[: reached[0]], at.given, samples):
            instead = SearchResult(changed, attempt(changed), 0, False)
            further = _reached(way, instead.result)
            if further > reached:
                best = other = instead
                reached = further
                break
            if other is None and further == reached and instead.result.cause not in seen:
                other = instead
            if attempt.left <= least:
                break
        if other is None:
            break
        at = other
        seen.add(at.result.cause)
    return best._replace(reached=reached[0], taken=_is_taken(machine, way, best.result))


def _is_taken(machine: Mapping[str, Json], way: WorkflowPath, result: "Result") -> bool:
    """Whether an execution went a way to its end, or waits for people on it.

    It may go round a loop of the way more often: how often is counted by the document.
    """
    names, visited = [step.name for step in way], result.visited
    if result.status == "PAUSED":
        return names[: len(visited)] == visited
    fails = machine["States"][names[-1]]["Type"] == "Fail"
    if (result.status == "FAILED") != fails:
        return False
    rounds = len(visited) > len(names) and set(visited) == set(names)
    return visited == names or (rounds and _straight(visited) == _straight(names))


def _straight(names: list[str]) -> list[str]:
    """Return the states of a way without the loops in it."""
    straight: list[str] = []
    for name in names:
        if name in straight:
            del straight[straight.index(name) + 1 :]
        else:
            straight.append(name)
    return straight


def _reached(way: WorkflowPath, result: "Result") -> tuple[int, bool]:
    """Return how many states of a way were entered, and whether the last of them was left."""
    count = 0
    for step, name in zip(way, result.visited, strict=False):
        if step.name != name:
            return count, True
        count += 1
    return count, len(result.visited) > count or result.status == "SUCCEEDED"


def _changes(
    machine: Mapping[str, Json], way: Sequence[DraftStep], given: RunInputs, samples: Sequence[Json]
) -> Iterator[RunInputs]:
    """Yield what may lead further than to the last state of *way*, with one value changed each."""
    states = [machine["States"][step.name] for step in way]
    ends = _ends(_paths(states[-1], _INPUT))
    answers = [
        (name, number, _answered(states[at], ends if at < len(way) - 1 else [()]))
        for at, name, number in _answers(way, states, given)
    ]
    values = _values(states, samples)
    for rank in range(max(map(len, [ends, *(places for *_, places in answers)]))):
        for value in values:
            for name, number, places in answers:
                if rank < len(places):
                    yield given.with_answer(name, number, places[rank], value)
            if rank < len(ends):
                yield given.put(ends[rank], value)


def _answered(state: Json, ends: Sequence[Place]) -> list[Place]:
    """Return the places of an answer at whose ends may stand what a state further on reads."""
    return [(*taken, *end) for taken in _paths(state, _RESULT) for end in ends]


def _answers(
    way: Sequence[DraftStep], states: Sequence[Json], given: RunInputs
) -> Iterator[tuple[int, str, int]]:
    """Yield the answers on a way that are no errors, the last one first.

    Each by where its Task is on the way, the name of that, and its number in the script.
    """
    for at in range(len(way) - 1, -1, -1):
        for name in tasks_of(way[at].name, states[at]):
            visits = sum(step.name == name for step in way[:at])
            number = min(visits, len(given.scripts[name]) - 1)  # the last answer repeats
            if "return" in given.scripts[name][number]:
                yield at, name, number


_STEPS: Final = r"((?:(?:\[[0-9]+\])?\.[A-Za-z_]\w*)+)"
_INPUT: Final = re.compile(rf"(?<!\$)\$(?:states\.input|\w+)?{_STEPS}")
_RESULT: Final = re.compile(rf"(?:\$states\.result|(?<!\$)\$){_STEPS}")
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_NAME: Final = re.compile(r"(?<![\w$.])(?!(?:and|or|in|true|false|null)\b)[A-Za-z_]\w*\b(?!\()")


def _paths(state: Json, pattern: re.Pattern[str]) -> list[Place]:
    """Return the places that the expressions of a state read, and the whole.

    A name by itself is one of what a query holds in its hands; one of several is that of the only
    one.
    """
    written = compact(state)
    paths = (_INDEX.sub("", path) for path in pattern.findall(written))
    found = [tuple(path.split(".")[1:]) for path in paths]
    for begun in written.split("{%")[1:]:
        query, ended, _ = begun.partition("%}")
        if ended:
            found += ((name,) for name in _NAME.findall(_LITERAL.sub("", query)))
    return list(dict.fromkeys([(), *found]))


def _ends(places: Sequence[Place]) -> list[Place]:
    """Return places, and what is left of each below its steps."""
    below = (place[at:] for place in places for at in range(1, len(place)))
    return list(dict.fromkeys((*places, *below)))


_LITERAL: Final = re.compile(r"'([^']*)'|\\\"((?:[^\"\\])*)\\\"|(-?\b\d+(?:\.\d+)?)")
_NUMBER: Final = re.compile(r"-?\b\d+(?:\.\d+)?")
_NAMES: Final = ("Next", "Default", "Type", "Comment", "Agent", "Resource", "QueryLanguage")
_LONGEST: Final = 64
"""Characters of a text that somebody may compare with."""
_USUAL: Final[tuple[Json, ...]] = (
    *("text", 1, True, False, 0, "", None, ["text"], ["text", "text"], [], {}, "1"),
)


def _values(states: Sequence[Json], samples: Sequence[Json]) -> list[Json]:
    """Return the values that states speak of, those of the last one first, and usual ones."""
    last, *before = reversed(states)
    values = [
        *_state_values(last),
        *samples,
        *_USUAL,
        *(value for state in before for value in _state_values(state)),
    ]
    return list({compact(value): value for value in values}.values())


def _state_values(state: Json) -> Iterator[Json]:
    """Yield the literals of a state and their neighbours."""
    for literal in _literals(state):
        if type(literal) is not str or len(literal) <= _LONGEST:
            yield literal
            yield from _neighbours(literal)


def _literals(part: Json) -> Iterator[Json]:
    """Yield the literals of a state, and a sample for each schema in it."""
    if type(part) is dict:
        if type(part.get("properties")) is dict:
            yield _sample(part)
        for key, each in part.items():
            if key not in _NAMES:
                yield from _literals(each)
    elif type(part) is list:
        for each in part:
            yield from _literals(each)
    elif type(part) is str and part.startswith("{%"):
        for text, other, number in _LITERAL.findall(compact(part)):
            yield _number(number) if number else text or other
    elif type(part) is not str or not part.startswith("$"):
        yield part


def _neighbours(literal: Json) -> Iterator[Json]:
    """Yield neighbours of a value: the next numbers, and the numbers in a text."""
    if type(literal) is str:
        for number in _NUMBER.findall(literal):
            yield _number(number)
            yield number
    elif type(literal) in (int, float):
        yield literal + 1
        yield literal - 1
        yield str(literal)


def _number(text: str) -> Json:
    return float(text) if "." in text else int(text)


_SAMPLES: Final[Mapping[str, Json]] = {
    "array": [],
    "boolean": True,
    "integer": 1,
    "number": 1,
    "null": None,
    "string": "text",
}


def _sample(schema: Json) -> Json:
    """Return a value of a JSON Schema, as far as it speaks of members, types and choices."""
    if type(schema) is not dict:
        return "text"
    if type(schema.get("properties")) is dict:
        return {name: _sample(each) for name, each in schema["properties"].items()}
    choices = schema.get("enum")
    return choices[0] if choices else _SAMPLES.get(str(schema.get("type")), "text")
