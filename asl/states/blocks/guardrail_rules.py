"""The rules of guardrails: searches in content, and redaction of matches (8.2)."""

import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from asl.core.regex import escape, find_all, linear
from asl.core.values import MAX_DEPTH, Json, compact
from asl.core.work import Spend, WorkExceeded, WorkMeter
from asl.states.blocks.pii import (
    KINDS,
    TextSpan,
    normal_form,
    personal_finder,
    personal_test,
    remove_overlaps,
)

__all__ = [
    "CUTTABLE",
    "ContentVerdict",
    "FindSpans",
    "Inspect",
    "NeedsInspection",
    "Prefilter",
    "always",
    "collect_texts",
    "compile_cutter",
    "compile_prefilter",
    "content_rule",
    "length_rule",
    "personal_kind",
]

MASK: Final = "[MASKED]"
CONTROLS: Final = {each: " " if chr(each).isspace() else None for each in (*range(32), 127)}
"""The control characters of ASCII in the normal form."""
_BLANKS: Final = re.compile("  +")
CUTTABLE: Final = ("pattern", "regex", "pii")
"""The types of rules whose matches can be redacted."""
MATCH: Final = 40
"""Steps for a match of a regular expression."""
GAP: Final = "\0"
"""Separator of texts; it occurs in no match of digits, letters and signs."""
LITERAL: Final = re.compile(r"[A-Za-z0-9 _@#%&=~:;,<>/!'\"-]*")
ALIASES: Final = {"ip_address": "ip", "creditcard": "credit_card", "credit-card": "credit_card"}

FindSpans: TypeAlias = Callable[[str, Spend], list[TextSpan]]
"""Returns the matches of a rule in a text, with counted work."""
NeedsInspection: TypeAlias = Callable[[Json, Spend], bool]
"""Returns whether rules may reject a content; most contents need no further inspection."""
Inspect: TypeAlias = Callable[[Json, list[str], Spend], "ContentVerdict | None"]
"""Judges a content and its texts; None for no violation."""


class ContentVerdict(NamedTuple):
    """The verdict of a rule or a validator on a content."""

    reason: str | None
    """The reason of a violation; None for none."""
    content: tuple[Json, ...] = ()
    """The replacement of the content, if any."""
    cuttable: bool = False
    """Whether the violating parts can be redacted."""


class Prefilter(NamedTuple):
    """Conditions under which a rule accepts a content with ASCII texts; all must hold."""

    minimum: int = 0
    maximum: float = math.inf
    """The bounds of its length."""
    words: tuple[str, ...] = ()
    """Words in none of its texts, in any case."""
    begins: tuple[str, ...] = ()
    """Texts in none of its texts, case-sensitive."""
    holds: Callable[[str, Spend], bool] | None = None
    """A test that is false for all texts joined by `GAP`."""
    find: FindSpans | None = None
    """A search without a match in any text."""


def always(content: Json, spend: Spend) -> bool:
    """Return True: every content needs inspection."""
    return True


def compile_prefilter(prefilters: list[Prefilter]) -> NeedsInspection:
    """Return a test for contents that the prefilters do not accept."""
    least, most = max((each.minimum for each in prefilters), default=0), math.inf
    words: list[str] = []
    begins: list[str] = []
    checks: list[Callable[[str, Spend], bool]] = []
    finds: list[FindSpans] = []
    for clue in prefilters:
        most = min(most, clue.maximum)
        words += clue.words
        begins += clue.begins
        checks += () if clue.holds is None else (clue.holds,)
        finds += () if clue.find is None else (clue.find,)
    measured = least > 0 or most < math.inf

    def doubts(content: Json, spend: Spend) -> bool:
        texts = collect_texts(content, spend)
        if measured and not least <= len(_text(content)) <= most:
            return True
        text = GAP.join(texts)
        if not text.isascii():
            return True
        if words:
            lower = text.translate(CONTROLS).lower()  # no letter beyond ASCII equals one of a word
            for word in words:
                if word in lower:
                    return True
        for begin in begins:
            if begin in text:
                return True
        for holds in checks:
            if holds(text, spend):
                return True
        for find in finds:
            for each in texts:
                if find(each, spend):
                    return True
        return False

    return doubts


def _text(content: Json) -> str:
    """Return the text of a content for its length."""
    return content if type(content) is str else compact(content)


def length_rule(written: Mapping[str, Json]) -> tuple[Prefilter, Inspect]:
    """Compile a rule on the length of a content."""
    least, most = written.get("Min", 0), written.get("Max", math.inf)

    def look(content: Json, texts: list[str], spend: Spend) -> ContentVerdict | None:
        length = len(_text(content))
        if length < least:
            return ContentVerdict(f"{length} characters are fewer than the minimum of {least}")
        if length > most:
            return ContentVerdict(f"{length} characters are more than the maximum of {most}")
        return None

    return Prefilter(least, most), look


def _finding(find: FindSpans, missing: Callable[[list[str], Spend], bool] | None) -> Inspect:
    def look(content: Json, texts: list[str], spend: Spend) -> ContentVerdict | None:
        if missing is not None and missing(texts, spend):
            return ContentVerdict("no allowed text is found")
        spans = list(chain.from_iterable(find(text, spend) for text in texts))
        if spans:
            labels = [span.label for span in spans]
            kinds = ", ".join(sorted({each.strip("[]").lower() for each in labels}))
            what = "something is" if kinds == "masked" else f"{kinds} is"
            reason = f"{what} found in {len(labels)} place{'s' * (len(labels) > 1)}"
            return ContentVerdict(reason, cuttable=True)
        return None

    return look


CHARACTERS: Final = 32
"""Characters of a text per step of work."""


def collect_texts(content: Json, spend: Spend, level: int = 1) -> list[str]:
    """Return every text of a content, in order.

    Raises:
        WorkExceeded: The content is too large or too deep.
    """
    kind = type(content)
    if kind is str:
        if len(content) > CHARACTERS:
            spend(len(content) // CHARACTERS)
        return [content]
    if kind is dict:
        content = content.values()
    elif kind is not list:
        return []
    if level > MAX_DEPTH:
        raise WorkExceeded("levels", MAX_DEPTH)
    found: list[str] = []
    characters = 0
    for each in content:
        kind = type(each)
        if kind is str:
            characters += len(each)
            found.append(each)
        elif kind is dict or kind is list:
            found += collect_texts(each, spend, level + 1)
    spend(4 + len(content) + characters // CHARACTERS)
    return found


def compile_cutter(find: FindSpans, action: str) -> Callable[[Json, Spend], Json]:
    """Return a function that removes or masks the matches in a content."""

    def cut_text(text: str, spend: Spend) -> str:
        pieces: list[str] = []
        end = 0
        for span in find(text, spend):
            pieces += text[end : span.start], span.label if action == "mask" else ""
            end = span.end
        return "".join((*pieces, text[end:]))

    def cut(content: Json, spend: Spend) -> Json:
        if type(content) is str:
            return cut_text(content, spend)
        if type(content) is dict:
            return {key: cut(each, spend) for key, each in content.items()}
        return [cut(each, spend) for each in content] if type(content) is list else content

    return cut


def _pattern(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter]:
    entries = [entry for entry in written.get("Block", ()) if entry]
    if not entries:
        return lambda text, spend: [], Prefilter()
    find = _words(entries)
    if not all(entry.isascii() and entry.isprintable() and " " not in entry for entry in entries):
        return find, Prefilter(find=find)
    return find, Prefilter(words=tuple(entry.lower() for entry in entries))


def _words(entries: Sequence[str]) -> FindSpans:
    """Return a search for entries in the normal form of a text (`normal_form`)."""
    spend = WorkMeter().spend
    plain = [_comparable(entry, spend)[0] for entry in entries]
    search = _literals([each for each in plain if each])
    unseen = _literals([entry for entry, each in zip(entries, plain, strict=True) if not each])

    def find(text: str, spend: Spend) -> list[TextSpan]:
        found = unseen(text, spend)
        if text.isascii():
            spend(len(text) // CHARACTERS)
            if not search(_BLANKS.sub(" ", text.translate(CONTROLS)), spend):
                return found
        comparable, origins = _comparable(text, spend)
        found += [
            TextSpan(origins[start], origins[end - 1] + 1, label)
            for start, end, label in search(comparable, spend)
        ]
        return remove_overlaps(found)

    return find


def _literals(entries: Sequence[str]) -> FindSpans:
    """Return a case-insensitive search for entries in a text."""
    if not entries:
        return lambda text, spend: []
    return _expression("|".join(map(escape, entries)), "i")


def _comparable(text: str, spend: Spend) -> tuple[str, Sequence[int]]:
    """Return the normal form of a text with single blanks, and the origin of each character."""
    plain, origins = normal_form(text, spend)
    if "  " not in plain:
        return plain, origins
    spend(len(plain))
    kept = [at for at, each in enumerate(plain) if each != " " or plain[at - 1 : at] != " "]
    return "".join([plain[at] for at in kept]), array("I", [origins[at] for at in kept])


def _missing(written: Mapping[str, Json]) -> Callable[[list[str], Spend], bool] | None:
    """Return a test for texts without any allowed entry of a pattern rule."""
    if "Allow" not in written:
        return None
    entries = written["Allow"]
    find = _words(entries)
    return lambda texts, spend: not any(find(text, spend) for text in texts if entries)


def _regex(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter]:
    pattern, flags = written["Pattern"], written.get("Flags", "")
    find = _expression(pattern, flags)
    begins = _beginning(pattern)
    if not begins:
        return find, Prefilter(find=find)
    if "i" in flags:
        return find, Prefilter(words=(begins.lower(),))
    return find, Prefilter(begins=(begins,))


def _beginning(pattern: str) -> str:
    """Return the literal beginning of all matches of an expression, empty for none."""
    found = LITERAL.match(pattern)
    assert found is not None
    repeated = pattern[found.end() : found.end() + 1] in ("?", "*", "{")
    return "" if "|" in pattern else found[0][: -1 if repeated else None]


def _expression(pattern: str, flags: str) -> FindSpans:
    compiled = linear(pattern, flags)

    def find(text: str, spend: Spend) -> list[TextSpan]:
        # In ASCII, positions of bytes and characters are the same; bytes are faster.
        searched = text.encode() if text.isascii() else text
        found: list[TextSpan] = []
        for match in find_all(compiled, searched, spend):
            spend(MATCH)
            found.append(TextSpan(match.start(), match.end(), MASK))
        return found

    return find


def _personal(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter]:
    kinds = [*map(personal_kind, written.get("Types", KINDS))]
    return personal_finder(kinds), Prefilter(holds=personal_test(kinds))


def personal_kind(written: str) -> str:
    """Return the name of a kind of personal data by one of its names."""
    name = written.lower()
    return ALIASES.get(name, name)


_FINDERS: Mapping[str, Callable[[Mapping[str, Json]], tuple[FindSpans, Prefilter]]] = {
    "pattern": _pattern,
    "regex": _regex,
    "pii": _personal,
}


def content_rule(written: Mapping[str, Json]) -> tuple[FindSpans, Prefilter | None, Inspect]:
    """Compile a rule of a type in `CUTTABLE`.

    Args:
        written: The rule.

    Returns:
        The search, the prefilter (None if every content needs inspection), and the inspection.
    """
    (find, clue), missing = _FINDERS[written["Type"]](written), _missing(written)
    return find, clue if missing is None else None, _finding(find, missing)
