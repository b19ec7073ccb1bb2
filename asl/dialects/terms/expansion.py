"""Documents without the functions of their dialects: what each call computes, in plain JSONata."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from asl.core.pointers import escape
from asl.core.values import Json
from asl.dialects.expressions import query
from asl.dialects.terms import (
    INPUT,
    NOTHING,
    DataPath,
    FunctionCall,
    Meanings,
    RewrittenMeanings,
    Term,
    known_truth,
    rewritten,
)
from asl.dialects.terms.jsonata import print_jsonata, read_jsonata
from asl.expr.query_protocol import query_source

__all__ = ["expand_functions"]

Report = Callable[[str, str], None]


def expand_functions(
    value: Mapping[str, Any], meanings: Meanings, report: Report
) -> dict[str, Any]:
    """Return a document whose expressions call no function of a dialect.

    Args:
        value: Value of a document.
        meanings: What the functions of its dialect compute.
        report: Called with the JSON Pointer and the text of an expression that cannot be stated
            without them; it stays as it is.

    Returns:
        The document; every other expression and field is unchanged. Rules that never hold, and
        outputs that change nothing, are left out.
    """
    if not meanings:
        return dict(value)
    found = _Expansion(meanings, report).expand(dict(value), "")
    assert isinstance(found, dict)
    return found


class _Expansion:
    def __init__(self, meanings: Meanings, report: Report) -> None:
        self.meanings = meanings
        self.report = report
        names = "|".join(map(re.escape, meanings))
        data = r"|\$states\b" if isinstance(meanings, RewrittenMeanings) else ""
        self.relevant = re.compile(rf"\$(?:{names})\s*\({data}")
        """Matches an expression that has another form without the dialect."""

    def term(self, part: Json) -> Term | None:
        """Return the term of an expression of the dialect, None for anything else."""
        source = query_source(part) if isinstance(part, str) else None
        if source is None or not self.relevant.search(source):
            return None
        return read_jsonata(source, self.meanings)

    def expand(self, part: Json, pointer: str) -> Json:
        """Return a part of a document without the functions."""
        if isinstance(part, dict):
            return self.members(part, pointer)
        if isinstance(part, list):
            return [
                self.expand(each, f"{pointer}/{index}")
                for index, each in enumerate(part)
                if not self.is_never_taken(each)
            ]
        term = self.term(part)
        if term is None:
            return part
        printed = print_jsonata(rewritten(term, self.meanings))
        if printed is None:
            self.report(pointer, str(query_source(str(part))))
            return part
        return query(printed)

    def members(self, part: dict[str, Json], pointer: str) -> dict[str, Json]:
        """Return an object, without outputs that change nothing and values that all work shares."""
        part, made = self.decided(part), {}
        for key, each in part.items():
            place = f"{pointer}/{escape(key)}"
            if key == "Metadata":
                made[key] = each
            elif self.term(each) == NOTHING:
                continue
            elif key != "Output":
                if not self.is_shared(each):
                    made[key] = self.expand(each, place)
            elif not self.is_input(each):
                made[key] = self.expand(self.own(each), place)
        states = made.get("States")
        if isinstance(states, dict) and isinstance(self.meanings, RewrittenMeanings):
            _bypass(made, states)
        if made.get("Type") == "Choice" and made.get("Choices") == []:
            following = made.pop("Default", None)
            made = {**made, "Type": "Pass", "Next": following}
            made.pop("Choices")
        return made

    def own(self, output: Json) -> Json:
        """Return the one value of an output whose other members all work shares."""
        if not isinstance(output, dict) or not any(map(self.is_shared, output.values())):
            return output
        left = [each for each in output.values() if not self.is_shared(each)]
        return left[0] if len(left) == 1 else output

    def is_shared(self, part: Json) -> bool:
        term = self.term(part)
        return isinstance(term, FunctionCall) and term.function == "shared"

    def is_never_taken(self, handler: Json) -> bool:
        return (
            isinstance(handler, dict)
            and "ErrorEquals" in handler
            and self.term(handler.get("Output")) == NOTHING
        )

    def is_input(self, part: Json) -> bool:
        """Whether an output is the input of its state, once the functions are left out."""
        term = self.term(part)
        return term is not None and rewritten(term, self.meanings) == DataPath(INPUT)

    def decided(self, part: dict[str, Json]) -> dict[str, Json]:
        """Return a Choice without the rules whose result is known."""
        if part.get("Type") != "Choice" or "Choices" not in part:
            return part
        rules: list[Json] = []
        for rule in _objects(part["Choices"]):
            term = self.term(rule.get("Condition"))
            holds = None if term is None else known_truth(term)
            if holds:
                other = {
                    key: each for key, each in part.items() if key not in ("Output", "Default")
                }
                kept = {"Output": rule["Output"]} if "Output" in rule else {}
                return {**other, "Choices": rules, **kept, "Default": rule["Next"]}
            if holds is None:
                rules.append(rule)
        return {**part, "Choices": rules}


def _bypass(machine: dict[str, Json], states: dict[str, Json]) -> None:
    """Remove the states of a machine that only lead to the next one."""
    leads = {
        name: str(state["Next"])
        for name, state in states.items()
        if isinstance(state, dict) and state.keys() == {"Type", "Next"} and state["Type"] == "Pass"
    }

    def target(name: Json) -> Json:
        seen: set[str] = set()
        while isinstance(name, str) and name in leads and name not in seen:
            seen.add(name)
            name = leads[name]
        return name

    machine["StartAt"] = target(machine.get("StartAt"))
    for name, state in [*states.items()]:
        if name in leads and target(name) not in leads:
            del states[name]
            continue
        assert isinstance(state, dict)
        rules = [each for key in ("Choices", "Catch") for each in _objects(state.get(key))]
        for holder in (state, *rules):
            for key in ("Next", "Default"):
                if key in holder:
                    holder[key] = target(holder[key])


def _objects(listed: Json) -> list[dict[str, Json]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
