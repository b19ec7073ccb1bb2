"""Simplification of choice rules, so that a conversion there and back does not lengthen them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from asl.core.values import Json
from asl.states.machines import nested_machines

__all__ = ["simplified", "simplify"]


def simplify(machine: Mapping[str, Any]) -> None:
    """Simplify all rules of a machine that was just written, in place."""
    for state in machine["States"].values():
        if state["Type"] == "Choice":
            state["Choices"] = [
                {
                    **simplified({key: rule[key] for key in rule if key not in _BESIDE}),
                    **_kept(rule),
                }
                for rule in state["Choices"]
            ]
        for _, inner in nested_machines(state):
            simplify(inner)


_BESIDE = ("Next", "Assign", "Comment")


def _kept(rule: Mapping[str, Json]) -> dict[str, Json]:
    return {key: rule[key] for key in _BESIDE if key in rule}


def simplified(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return an equivalent rule that evaluates its parts in the same order.

    Negations are moved to the comparisons, and parts with a known result are left out.
    """
    found = _asked(_said(rule, negated=False), ())
    return {**rule} if found in (_TRUE, _FALSE) else found


_Rule = dict[str, Any]
_TRUE: Final[_Rule] = {"And": []}
_FALSE: Final[_Rule] = {"Or": []}
_DUAL: Final = {"And": "Or", "Or": "And"}


def _said(rule: Mapping[str, Any], *, negated: bool) -> _Rule:
    """Return a rule with its negations at the comparisons, and no And in an And, or Or in an Or."""
    if "Not" in rule:
        return _said(rule["Not"], negated=not negated)
    for word, dual in _DUAL.items():
        if word in rule:
            own = dual if negated else word
            parts = [_said(each, negated=negated) for each in rule[word]]
            flat = [each for part in parts for each in part.get(own, (part,))]
            return flat[0] if len(flat) == 1 else {own: flat}
    return _negation(rule) if negated else {**rule}


def _asked(rule: _Rule, known: Sequence[_Rule]) -> _Rule:
    """Return the rest of a rule where some comparisons are known to be true."""
    for word in _DUAL:
        if word in rule:
            return _joined(word, rule[word], known)
    if rule in known:
        return _TRUE
    return _FALSE if _negation(rule) in known else rule


def _joined(word: str, given: Sequence[_Rule], known: Sequence[_Rule]) -> _Rule:
    """Return parts under And or Or; each part uses the results of those before it."""
    neutral, ending = (_TRUE, _FALSE) if word == "And" else (_FALSE, _TRUE)
    parts: list[_Rule] = []
    for each in given:
        found = _asked(each, known)
        if found == ending and not parts:
            return ending
        if found == ending:  # the parts before it are evaluated first
            parts += [part for part in [_asked(each, ())] if part not in parts]
            break
        for part in found.get(word, () if found == neutral else (found,)):
            if part not in parts:
                parts.append(part)
            if "And" not in part and "Or" not in part:
                known = [*known, part if word == "And" else _negation(part)]
    return parts[0] if len(parts) == 1 else {word: parts}


def _negation(rule: Mapping[str, Any]) -> _Rule:
    """Return the negation of a comparison."""
    if "Not" in rule:
        return {**rule["Not"]}
    if isinstance(rule.get("IsPresent"), bool):
        return {**rule, "IsPresent": not rule["IsPresent"]}
    return {"Not": {**rule}}
