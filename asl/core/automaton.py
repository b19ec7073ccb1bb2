"""Regular expressions matched in linear time, for where RE2 is not installed.

A pattern becomes a program of instructions (Thompson). What its threads do with a character is
computed once and remembered as a state of an automaton, so a text costs one look-up a character;
the threads are followed one by one only where a match was found, for the spans of its groups.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple, overload

from asl.core import regex_syntax as syntax
from asl.core.work import Spend, WorkExceeded

__all__ = ["Match", "Pattern"]

MAX_INSTRUCTIONS: Final = 5_000
"""Instructions of a program."""
MAX_WORK: Final = 1_000_000
"""Instructions that the search for one match may visit, each about a microsecond."""
READ: Final = 16
"""Characters with a known next state that cost as much as an instruction."""
MAX_REMEMBERED: Final = 100_000
"""Instructions in all remembered states of a program."""
STATE: Final = 40
"""What a state takes beside its instructions, in those."""

STEPS: Final = 4
"""Steps of a `WorkMeter` that a visit costs."""

Span = tuple[int, int]
_Spans = tuple[int, ...]
_Thread = tuple[int, _Spans]


class _Instruction(NamedTuple):
    kind: Literal["character", "split", "save", "assert", "match"]
    following: int = 0
    other: int = 0
    """Where a split leads with less priority; the index of what a save records."""
    test: syntax.Test | None = None
    place: syntax.Place | None = None


class _State(dict[str, "_State"]):
    """The threads of a program between two characters, and the states that follow it."""

    __slots__ = ("before", "fresh", "matched", "threads")

    def __init__(self, threads: tuple[int, ...], before: str, matched: bool, fresh: bool) -> None:
        self.threads = threads
        self.before = before
        self.matched = matched
        """Whether a match ended before the last character."""
        self.fresh = fresh
        """Whether no match has begun."""


class _Work:
    def __init__(self, spend: Spend | None) -> None:
        self.left = MAX_WORK
        self.share = spend

    def spend(self, amount: int) -> None:
        if self.share is not None:
            self.share(STEPS * amount)
        self.left -= amount
        if self.left < 0:
            raise WorkExceeded("steps", MAX_WORK)


class _Program:
    """The instructions of a pattern."""

    def __init__(self, node: syntax.Node, groups: int, mode: Literal["search", "match", "full"]):
        self.code: list[_Instruction] = []
        self.emitted = 0
        self.slots: _Spans = (-1,) * (2 * groups + 2)
        end = self._add(_Instruction("save", self._add(_Instruction("match")), 1))
        if mode == "full":
            end = self._add(_Instruction("assert", end, place="text end"))
        self.start = self._add(_Instruction("save", self._emit(node, end), 0))
        self.loop = -1
        if mode == "search":
            self.loop = self._add(_Instruction("split"))
            skip = self._add(_Instruction("character", self.loop, test=lambda each: True))
            self.code[self.loop] = _Instruction("split", self.start, skip)
            self.start = self.loop
        self.places = any(each.kind == "assert" for each in self.code)
        self.states: dict[tuple[tuple[int, ...], str, bool], _State] = {}
        self.remembered = 0

    def _add(self, instruction: _Instruction) -> int:
        if len(self.code) >= MAX_INSTRUCTIONS:
            raise ValueError("pattern too large")
        self.code.append(instruction)
        return len(self.code) - 1

    def _emit(self, node: syntax.Node, following: int) -> int:
        """Add the instructions of a node, and return where they begin."""
        self.emitted += 1
        if self.emitted > 4 * MAX_INSTRUCTIONS:
            raise ValueError("pattern too large")
        match node:
            case syntax.Characters(test):
                return self._add(_Instruction("character", following, test=test))
            case syntax.Assertion(place):
                return self._add(_Instruction("assert", following, place=place))
            case syntax.Group(index, item):
                end = self._add(_Instruction("save", following, 2 * index + 1))
                return self._add(_Instruction("save", self._emit(item, end), 2 * index))
            case syntax.Sequence(items):
                for each in reversed(items):
                    following = self._emit(each, following)
                return following
            case syntax.Alternatives(items):
                starts = [self._emit(each, following) for each in items]
                start = starts.pop()
                while starts:
                    start = self._add(_Instruction("split", starts.pop(), start))
                return start
            case syntax.Repeat(item, least, most, greedy):
                return self._repeat(item, least, most, greedy, following)

    def _repeat(
        self, item: syntax.Node, least: int, most: int | None, greedy: bool, following: int
    ) -> int:
        end = following
        if most is None:
            loop = self._add(_Instruction("split"))
            start = self._emit(item, loop)
            self.code[loop] = _split(start, end, greedy)
            following = start if least else self._add(_split(start, end, greedy))
            least -= 1
        else:
            for _ in range(most - least):
                following = self._add(_split(self._emit(item, following), end, greedy))
        for _ in range(least):
            following = self._emit(item, following)
        return following

    def find(self, text: str, begin: int, work: _Work) -> Span | None:
        """Return a place from which the first match is found, and where that ends."""
        work.spend(1)
        state = self._state((self.start,), self._kind(text[begin - 1]) if begin else "start")
        since, end, at = begin, -1, begin
        for at in range(begin, len(text)):
            try:
                state = state[text[at]]
            except KeyError:
                state = self._follow(state, text[at], work)
            if state.fresh:
                since = at + 1
            elif state.matched:
                end = at
            if not state.threads:
                break
        else:
            at = len(text)
            if self._follow(state, "", work).matched:
                end = at
        work.spend((at - begin) // READ)
        return None if end < 0 else (since, end)

    def spans(self, text: str, since: int, end: int, work: _Work) -> _Spans:
        """Return the places of a match and of its groups."""
        threads: list[_Thread] = [(self.start, self.slots)]
        before, found = self._kind(text[since - 1]) if since else "start", self.slots
        for at in range(since, end + 1):
            character = text[at : at + 1]
            threads, matched = self._step(threads, before, character, at, work)
            found = matched or found
            before = self._kind(character)
        return found

    def _kind(self, character: str) -> str:
        """Return what an assertion may want to know of the character before it."""
        if not self.places:
            return ""
        return "word" if _is_word(character) else character if character == "\n" else ""

    def _state(self, threads: tuple[int, ...], before: str, matched: bool = False) -> _State:
        before = before if self.places else ""
        key = threads, before, matched
        state = self.states.get(key)
        if state is None:
            if self.remembered > MAX_REMEMBERED:
                self.states, self.remembered = {}, 0
            self.remembered += len(threads) + STATE
            state = self.states[key] = _State(*key, fresh=threads == (self.loop,))
        return state

    def _follow(self, state: _State, character: str, work: _Work) -> _State:
        """Compute the state behind a character."""
        before = [(each, ()) for each in state.threads]
        threads, matched = self._step(before, state.before, character, 0, work)
        unique = tuple(dict.fromkeys(each for each, _ in threads))
        following = self._state(unique, self._kind(character), matched is not None)
        if self.remembered > MAX_REMEMBERED:
            state.clear()
        self.remembered += STATE // 4
        state[character] = following
        return following

    def _step(
        self, threads: Sequence[_Thread], before: str, character: str, at: int, work: _Work
    ) -> tuple[list[_Thread], _Spans | None]:
        """Return the threads behind a character, and the spans of a match that ends before it."""
        seen: set[int] = set()
        after: list[_Thread] = []
        matched: _Spans | None = None
        stack = list(reversed(threads))
        visits = 0
        while stack:
            index, spans = stack.pop()
            visits += 1
            if index in seen:
                continue
            seen.add(index)
            kind, following, other, test, place = self.code[index]
            if kind == "character":
                if character and test is not None and test(character):
                    after.append((following, spans))
            elif kind == "split":
                stack += ((other, spans), (following, spans))
            elif kind == "save":
                saved = (*spans[:other], at, *spans[other + 1 :]) if spans else spans
                stack.append((following, saved))
            elif kind == "match":
                matched = spans
                break
            elif place is not None and _holds(place, before, character):
                stack.append((following, spans))
        work.spend(visits)
        return after, matched


def _split(start: int, end: int, greedy: bool) -> _Instruction:
    return _Instruction("split", *((start, end) if greedy else (end, start)))


def _holds(place: syntax.Place, before: str, after: str) -> bool:
    if place == "text start":
        return before == "start"
    if place == "text end":
        return not after
    if place == "line start":
        return before in ("start", "\n")
    if place == "line end":
        return after in ("", "\n")
    return ((before == "word") != _is_word(after)) == (place == "boundary")


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


class Match:
    """A match: the interface of `re.Match`, as far as it is used."""

    def __init__(self, pattern: "Pattern", text: str, spans: _Spans) -> None:
        self._names = pattern.groupindex
        self._text = text
        self._spans = spans

    def span(self, group: int | str = 0) -> Span:
        """Return where a group begins and ends, -1 where it took no part."""
        index = self._names[group] if isinstance(group, str) else group
        return self._spans[2 * index], self._spans[2 * index + 1]

    def start(self, group: int | str = 0) -> int:
        """Return where a group begins."""
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        """Return where a group ends."""
        return self.span(group)[1]

    def group(self, group: int | str = 0) -> str | None:
        """Return the text of a group, None where it took no part."""
        start, end = self.span(group)
        return None if start < 0 else self._text[start:end]

    __getitem__ = group

    @overload
    def groups(self) -> tuple[str | None, ...]: ...
    @overload
    def groups(self, default: str) -> tuple[str, ...]: ...
    def groups(self, default: str | None = None) -> tuple[str | None, ...]:
        """Return the texts of all groups."""
        found = map(self.group, range(1, len(self._spans) // 2))
        return tuple(default if each is None else each for each in found)

    def groupdict(self) -> dict[str, str | None]:
        """Return the texts of the groups with names."""
        return {name: self.group(index) for name, index in self._names.items()}


class Pattern:
    """A regular expression: the interface of `re.Pattern`, as far as it is used."""

    counts_work: Final = True
    """`finditer` and `fullmatch` take what counts their steps."""

    def __init__(self, pattern: str, flags: str = "") -> None:
        """Compile a pattern; raises ValueError with the reason why that is not possible."""
        self.pattern = pattern
        self._node, self.groupindex, self.groups = syntax.parse(pattern, flags)
        _ = self._searching

    @cached_property
    def _searching(self) -> _Program:
        return _Program(self._node, self.groups, "search")

    @cached_property
    def _matching(self) -> _Program:
        return _Program(self._node, self.groups, "match")

    @cached_property
    def _filling(self) -> _Program:
        return _Program(self._node, self.groups, "full")

    def search(self, text: str | bytes) -> Match | None:
        """Return the first match."""
        return next(self.finditer(text), None)

    def match(self, text: str | bytes) -> Match | None:
        """Return the match at the beginning."""
        return self._find(self._matching, _decoded(text), 0)

    def fullmatch(self, text: str | bytes, spend: Spend | None = None) -> Match | None:
        """Return the match of the whole text."""
        return self._find(self._filling, _decoded(text), 0, spend)

    def finditer(self, text: str | bytes, spend: Spend | None = None) -> Iterator[Match]:
        """Yield the matches that do not overlap."""
        searched = _decoded(text)
        at = 0
        while at <= len(searched):
            match = self._find(self._searching, searched, at, spend)
            if match is None:
                return
            yield match
            start, end = match.span()
            at = end + 1 if start == end else end

    def _find(
        self, program: _Program, text: str, begin: int, spend: Spend | None = None
    ) -> Match | None:
        work = _Work(spend)
        found = program.find(text, begin, work)
        if found is None:
            return None
        return Match(self, text, program.spans(text, *found, work))


def _decoded(text: str | bytes) -> str:
    """Return a text; raises UnicodeEncodeError for half of a surrogate pair, as RE2 does."""
    if isinstance(text, bytes):
        return text.decode()
    if not text.isascii():
        text.encode()
    return text
