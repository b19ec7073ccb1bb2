"""Match regular expressions in linear time where google-re2 is not installed.

A pattern becomes a program of instructions (Thompson). The step from one set of threads to the next
is computed once for each kind of character and cached. A text is read twice, with one look-up per
character: first for the end of a match, then from its start for the spans of its groups.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Literal, NamedTuple, overload

from asl.core import regex_syntax as syntax
from asl.core.work import Spend, WorkExceeded

__all__ = ["RegexAutomaton", "RegexMatch"]

MAX_INSTRUCTIONS: Final = 5_000
"""Instructions of a program."""
MAX_WORK: Final = 400_000
"""Instructions that a search for all matches may visit, each about a microsecond."""
SEARCH: Final = 6
"""Cost of a search for one match, in instructions."""
READ: Final = 8
"""Characters with a known next state that cost as much as an instruction."""
MOVED: Final = 8
"""Threads that move with their spans and cost as much as an instruction."""
COPIED: Final = 64
"""Spans that are copied in the time of such a move."""
CHUNK: Final = 1_024
"""Characters read between two counts of the work."""
MAX_REMEMBERED: Final = 100_000
"""Words of memory (eight bytes each) for all cached states of a program."""
STATE: Final = 80
"""Words of memory of a state without its instructions."""
ENTRY: Final = 10
"""Words of memory of a dictionary entry, or of a thread in a step."""

STEPS: Final = 4
"""Steps of a `WorkMeter` for one visited instruction."""

OTHER, WORD, NEWLINE, EDGE = range(4)
"""What an assertion wants to know of a character; an edge is the start or the end of a text."""
KIND_BITS: Final = 2

Span = tuple[int, int]
_Spans = list[int]
_Move = tuple[int, tuple[int, ...]]
"""The thread that another one comes from, and which spans begin or end between them."""
_Moves = tuple[_Move, ...] | None
"""Where each thread comes from, None where all stay what they are."""


class _Instruction(NamedTuple):
    kind: Literal["character", "split", "save", "assert", "match"]
    following: int = 0
    other: int = 0
    """Where a split leads with less priority; the index of what a save records; a bit of a test."""
    place: syntax.Place | None = None


class _State(dict[str, "_State"]):
    """The threads of a program between two characters, and the known next states."""

    __slots__ = ("before", "event", "fresh", "matched", "moves", "steps", "threads")

    def __init__(self, threads: tuple[int, ...], before: int, matched: bool, fresh: bool) -> None:
        self.threads = threads
        self.before = before
        self.matched = matched
        """Whether a match ended before the last character."""
        self.fresh = fresh
        """Whether no match has begun."""
        self.event = matched or fresh or not threads
        self.moves: dict[str, _Track] = {}
        self.steps: dict[int, _Step] = {}

    def forget(self) -> None:
        """Drop the cached next states."""
        self.clear()
        self.moves.clear()
        self.steps.clear()


class _Step(NamedTuple):
    """The effect of a character on the threads of a state."""

    following: _State
    moves: _Moves
    matched: _Move | None
    """Where the thread comes from that ends a match before the character."""


_Track = tuple[_State, _Moves, int]
"""The state behind a character, where its threads come from, and what their moves cost."""


class _Work:
    """The work left for a search."""

    def __init__(self, spend: Spend | None) -> None:
        self.left = MAX_WORK
        self.share = spend

    def spend(self, amount: int) -> None:
        if self.share is not None:
            self.share(STEPS * amount)
        self.left -= amount
        if self.left < 0:
            raise WorkExceeded("steps", STEPS * MAX_WORK)


class _Program:
    """The instructions of a pattern."""

    def __init__(self, node: syntax.Node, groups: int, mode: Literal["search", "match", "full"]):
        self.code: list[_Instruction] = []
        self.emitted = 0
        self.slots = 2 * groups + 2
        self.tests: dict[syntax.Test, int] = {}
        end = self._add(_Instruction("save", self._add(_Instruction("match")), 1))
        if mode == "full":
            end = self._add(_Instruction("assert", end, place="text end"))
        self.start = self._add(_Instruction("save", self._emit(node, end), 0))
        self.loop = -1
        if mode == "search":
            self.loop = self._add(_Instruction("split"))
            skip = self._character(syntax.any_character, self.loop)
            self.code[self.loop] = _Instruction("split", self.start, skip)
            self.start = self.loop
        self.places = any(each.kind == "assert" for each in self.code)
        self.states: dict[tuple[tuple[int, ...], int, bool], _State] = {}
        self.symbols: dict[str, int] = {}
        self.remembered = 0

    def _add(self, instruction: _Instruction) -> int:
        if len(self.code) >= MAX_INSTRUCTIONS:
            raise ValueError("pattern too large")
        self.code.append(instruction)
        return len(self.code) - 1

    def _character(self, test: syntax.Test, following: int) -> int:
        index = self.tests.setdefault(test, len(self.tests))
        return self._add(_Instruction("character", following, 1 << index + KIND_BITS))

    def _emit(self, node: syntax.Node, following: int) -> int:
        """Add the instructions of a node, and return where they begin."""
        self.emitted += 1
        if self.emitted > 4 * MAX_INSTRUCTIONS:
            raise ValueError("pattern too large")
        match node:
            case syntax.Characters(test):
                return self._character(test, following)
            case syntax.Assertion(place):
                return self._add(_Instruction("assert", following, place=place))
            case syntax.Group(index, item):
                end = self._add(_Instruction("save", following, 2 * index + 1))
                return self._add(_Instruction("save", self._emit(item, end), 2 * index))
            case syntax.Concatenation(items):
                for each in reversed(items):
                    following = self._emit(each, following)
                return following
            case syntax.Alternatives(items):
                starts = [self._emit(each, following) for each in items]
                start = starts.pop()
                while starts:
                    start = self._add(_Instruction("split", starts.pop(), start))
                return start
            case syntax.Repetition(item, least, most, greedy):
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
        """Return a position from which the first match is found, and the end of that match."""
        work.spend(SEARCH)
        state = self._first(text, begin)
        since, end, at = begin, -1, begin
        while at < len(text):
            start = at
            for at, character in enumerate(text[start : start + CHUNK], start):
                try:
                    state = state[character]
                except KeyError:
                    state = self._follow(state, character, work)
                if state.event:
                    if state.fresh:
                        since = at + 1
                        continue
                    if state.matched:
                        end = at
                    if not state.threads:
                        work.spend((at - start) // READ)
                        return None if end < 0 else (since, end)
            at += 1
            work.spend((at - start) // READ)
        if self._step(state, EDGE, work).matched:
            end = len(text)
        return None if end < 0 else (since, end)

    def spans(self, text: str, since: int, end: int, work: _Work) -> _Spans:
        """Return the places of a match and of its groups."""
        state = self._first(text, since)
        threads: list[_Spans] = [[-1] * self.slots]
        for start in range(since, end, CHUNK):
            part = text[start : min(start + CHUNK, end)]
            work.spend(len(part) // READ)
            moved = 0
            for at, character in enumerate(part, start):
                try:
                    state, moves, cost = state.moves[character]
                except KeyError:
                    state, moves, cost = self._track(state, character, work)
                if moves is not None:
                    threads = [
                        _saved(threads[origin], saves, at) if saves else threads[origin]
                        for origin, saves in moves
                    ]
                    moved += cost
                    if moved > CHUNK:
                        work.spend(moved // MOVED)
                        moved = 0
            work.spend(moved // MOVED)
        symbol = self._symbol(text[end], work) if end < len(text) else EDGE
        matched = self._step(state, symbol, work).matched
        assert matched is not None, "the first reading has found a match here"
        return _saved(threads[matched[0]], matched[1], end)

    def _first(self, text: str, begin: int) -> _State:
        """Return the initial state of a search."""
        return self._state((self.start,), _kind(text[begin - 1]) if begin else EDGE)

    def _state(self, threads: tuple[int, ...], before: int, matched: bool = False) -> _State:
        before = before if self.places else OTHER
        key = threads, before, matched
        state = self.states.get(key)
        if state is None:
            self._remember(len(threads) + STATE)
            state = self.states[key] = _State(*key, fresh=threads == (self.loop,))
        return state

    def _symbol(self, character: str, work: _Work) -> int:
        """Return what a program distinguishes of a character: its kind and the tests it passes."""
        symbol = self.symbols.get(character)
        if symbol is None:
            work.spend(len(self.tests))
            symbol = _kind(character) if self.places else OTHER
            for test, index in self.tests.items():
                if test(character):
                    symbol |= 1 << index + KIND_BITS
            self._remember(ENTRY)
            self.symbols[character] = symbol
        return symbol

    def _follow(self, state: _State, character: str, work: _Work) -> _State:
        """Return the state after a character."""
        work.spend(1)
        following = self._step(state, self._symbol(character, work), work).following
        self._remember(ENTRY)
        state[character] = following
        return following

    def _track(self, state: _State, character: str, work: _Work) -> _Track:
        """Return the state after a character, and the origin of its threads."""
        work.spend(1)
        following, moves, _ = self._step(state, self._symbol(character, work), work)
        saves = sum(len(each) for _, each in moves or ())
        cost = len(moves or ()) + saves * (2 + self.slots // COPIED)
        self._remember(ENTRY)
        state.moves[character] = track = following, moves, cost
        return track

    def _step(self, state: _State, symbol: int, work: _Work) -> _Step:
        """Return the effect of a character on the threads of a state."""
        known = state.steps.get(symbol)
        if known is not None:
            return known
        after, matched = self._run(state, symbol, work)
        moves: _Moves = tuple(after.values())
        if moves == tuple((each, ()) for each in range(len(state.threads))):
            moves = None
        following = self._state(tuple(after), symbol & 3, matched is not None)
        words = ENTRY * len(moves) + sum(len(saves) for _, saves in moves) if moves else 0
        self._remember(ENTRY + words)
        step = state.steps[symbol] = _Step(following, moves, matched)
        return step

    def _remember(self, words: int) -> None:
        """Count memory before it is used; forget all states if it is too much."""
        self.remembered += words
        if self.remembered > MAX_REMEMBERED:
            for state in self.states.values():
                state.forget()
            self.states.clear()
            self.symbols.clear()
            self.remembered = words

    def _run(
        self, state: _State, symbol: int, work: _Work
    ) -> tuple[dict[int, _Move], _Move | None]:
        """Return the threads after a character, and the thread of a match that ends before it."""
        seen: set[int] = set()
        after: dict[int, _Move] = {}
        matched: _Move | None = None
        before, code = state.before, self.code
        stack: list[tuple[int, int, tuple[int, ...]]] = [
            (index, origin, ()) for origin, index in enumerate(state.threads)
        ]
        stack.reverse()
        visits = 0
        while stack:
            index, origin, saves = stack.pop()
            visits += 1
            if index in seen:
                continue
            seen.add(index)
            kind, following, other, place = code[index]
            if kind == "character":
                if symbol & other:
                    after.setdefault(following, (origin, saves))
            elif kind == "split":
                stack += ((other, origin, saves), (following, origin, saves))
            elif kind == "save":
                visits += len(saves) // COPIED
                stack.append((following, origin, (*saves, other)))
            elif kind == "match":
                matched = origin, saves
                break
            elif place is not None and _holds(place, before, symbol & 3):
                stack.append((following, origin, saves))
        work.spend(visits)
        return after, matched


def _split(start: int, end: int, greedy: bool) -> _Instruction:
    return _Instruction("split", *((start, end) if greedy else (end, start)))


def _saved(spans: _Spans, saves: tuple[int, ...], at: int) -> _Spans:
    """Return the spans with those in *saves* set to a position."""
    spans = spans.copy()
    for index in saves:
        spans[index] = at
    return spans


def _kind(character: str) -> int:
    if character.isascii() and (character.isalnum() or character == "_"):
        return WORD
    return NEWLINE if character == "\n" else OTHER


def _holds(place: syntax.Place, before: int, after: int) -> bool:
    if place == "text start":
        return before == EDGE
    if place == "text end":
        return after == EDGE
    if place == "line start":
        return before in (EDGE, NEWLINE)
    if place == "line end":
        return after in (EDGE, NEWLINE)
    return ((before == WORD) != (after == WORD)) == (place == "boundary")


class RegexMatch:
    """A match with the part of `re.Match`'s interface that is used here."""

    def __init__(self, pattern: "RegexAutomaton", text: str, spans: _Spans) -> None:
        self._names = pattern.groupindex
        self._text = text
        self._spans = spans

    def span(self, group: int | str = 0) -> Span:
        """Return the start and end of a group, -1 for a group that did not match."""
        index = self._names[group] if isinstance(group, str) else group
        return self._spans[2 * index], self._spans[2 * index + 1]

    def start(self, group: int | str = 0) -> int:
        """Return the start of a group."""
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        """Return the end of a group."""
        return self.span(group)[1]

    def group(self, group: int | str = 0) -> str | None:
        """Return the text of a group, None for a group that did not match."""
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
        """Return the texts of the named groups."""
        return {name: self.group(index) for name, index in self._names.items()}


class RegexAutomaton:
    """A regular expression with the part of `re.Pattern`'s interface that is used here."""

    counts_work: Final = True
    """`finditer` and `fullmatch` take what counts their steps."""

    def __init__(self, pattern: str, flags: str = "") -> None:
        """Compile a pattern.

        Raises:
            ValueError: The pattern is invalid; the message gives the reason.
        """
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

    def search(self, text: str | bytes) -> RegexMatch | None:
        """Return the first match."""
        return next(self.finditer(text), None)

    def match(self, text: str | bytes) -> RegexMatch | None:
        """Return the match at the beginning."""
        return self._find(self._matching, _decoded(text), 0, _Work(None))

    def fullmatch(self, text: str | bytes, spend: Spend | None = None) -> RegexMatch | None:
        """Return the match of the whole text."""
        return self._find(self._filling, _decoded(text), 0, _Work(spend))

    def finditer(self, text: str | bytes, spend: Spend | None = None) -> Iterator[RegexMatch]:
        """Yield the matches that do not overlap."""
        searched, work = _decoded(text), _Work(spend)
        at = 0
        while at <= len(searched):
            match = self._find(self._searching, searched, at, work)
            if match is None:
                return
            yield match
            start, end = match.span()
            at = end + 1 if start == end else end

    def _find(self, program: _Program, text: str, begin: int, work: _Work) -> RegexMatch | None:
        found = program.find(text, begin, work)
        if found is None:
            return None
        return RegexMatch(self, text, program.spans(text, *found, work))


def _decoded(text: str | bytes) -> str:
    """Decode a text; raises UnicodeEncodeError for a lone surrogate, as RE2 does."""
    if isinstance(text, bytes):
        return text.decode()
    if not text.isascii():
        text.encode()
    return text
