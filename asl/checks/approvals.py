"""Approvals among other states: V-APR-06, V-APR-11, V-APR-15 (Specification 6.9).

A rule may ask for a decision in the Approval itself or in a Choice behind it.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from asl.checks.path_expressions import parts
from asl.checks.transitions import next_states
from asl.checks.workflow import CheckedWorkflow, MachineScope, objects, text
from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault
from asl.core.pointers import escape
from asl.core.values import Json
from asl.expr.choice_rules import COMBINATORS
from asl.expr.paths import parse_path
from asl.states import type_of
from asl.states.approval_answers import ANYTHING
from asl.states.approval_fields import OPTIONS
from asl.states.base import Node

__all__ = ["check"]

Keys: TypeAlias = tuple[str | int, ...]


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the rules on decisions, and approvals that pause only a part."""
    for scope in workflow.scopes:
        records = list(_records(scope))
        if not records:
            continue
        yield from _forked(scope, records)
        for node in scope.nodes:
            seen = [each for each in records if each.seen_by(node)]
            for index, rule in objects(node.value, "Choices") if seen else ():
                yield from _rule(workflow, rule, node.at("Choices", index), seen, node)


class _Record(NamedTuple):
    """The decision of one Approval, and where rules find it."""

    node: Node
    at: Keys | None
    """Where `ResultPath` puts it; None where that is unknown."""
    options: frozenset[str] | None
    """What it can be; None where that is known only when the state runs."""
    alone: bool
    """Whether no other state of the machine writes there."""
    next: frozenset[str]
    """The names of the states that follow the Approval and no other state."""

    def seen_by(self, node: Node) -> bool:
        """Whether the rules of a state may ask for this decision.

        A record that is merged into the input is there as long as no other state has run.
        """
        if node is self.node:
            return True
        if node.value.get("Type") != "Choice" or self.at is None:
            return False
        return self.alone if self.at else node.name in self.next

    def member(self, keys: Keys) -> Json:
        """Return the member of the record that a path reads, None for anything else."""
        places = {(), self.at} if self.at is not None else {()}
        return keys[-1] if keys and keys[:-1] in places else None


def _records(scope: MachineScope) -> Iterator[_Record]:
    written = [(node, _keys(text(node.value, "ResultPath"))) for node in scope.nodes]
    for node, at in written:
        if node.value.get("Type") == "Approval":
            others = [keys for other, keys in written if other is not node]
            elsewhere = {
                name for other in scope.nodes if other is not node for name in next_states(other)
            }
            merged = "ResultPath" not in node.value and "OutputPath" not in node.value
            at = () if merged and node.query_language == "JSONPath" else at
            after = frozenset(next_states(node)) - elsewhere
            yield _Record(node, at, _options(node), at not in others, after)


def _options(node: Node) -> frozenset[str] | None:
    listed = node.value.get("Options", list(OPTIONS))
    if type(listed) is not list or any(
        type(each) is not str or node.open(each) or each.startswith("{%") for each in listed
    ):
        return None
    return frozenset(listed)


def _keys(written: str | None) -> Keys | None:
    """Return the steps of a path into the data, None for any other text."""
    try:
        path = None if written is None else parse_path(written)
    except ExpressionFault:
        return None
    return path.keys if path is not None and path.definite and path.root == "$" else None


# Rules on decisions


def _rule(
    workflow: CheckedWorkflow,
    rule: Mapping[str, Json],
    pointer: str,
    records: Collection[_Record],
    node: Node,
) -> Iterator[Finding]:
    """Judge a rule of the state that is *node*, and the rules within."""
    for field in COMBINATORS:
        for step, part in parts(rule.get(field)):
            yield from _rule(workflow, part, f"{pointer}/{field}{step}", records, node)
    variable = text(rule, "Variable") or ""
    keys = _keys(variable) or ()
    for record in records:
        found = record.member(keys)
        if found == "decision":
            near = f"did you mean '{variable.removesuffix('decision')}approval'?"
            message = "the record of an approval has no 'decision'"
            yield Finding("V-APR-11", message, f"{pointer}/Variable", near)
            return
        if found == "approval" and record.options is not None:
            later = () if node is record.node else ("timeout",)
            yield from _option(workflow, rule, pointer, record.options.union(later))
            return


def _option(
    workflow: CheckedWorkflow, rule: Mapping[str, Json], pointer: str, options: Collection[str]
) -> Iterator[Finding]:
    for field, wanted in rule.items():
        if field == "StringEquals" and type(wanted) is str and not {wanted, ANYTHING} & {*options}:
            hint = workflow.suggestions.near(wanted, options)
            if hint is None and wanted == "timeout":
                hint = "a timeout goes to 'Default', whatever the rules say"
            listed = ", ".join(map(repr, sorted(options)))
            yield Finding(
                "V-APR-06",
                f"{wanted!r} is none of the options",
                f"{pointer}/{escape(field)}",
                hint or f"the options are {listed}",
            )


# Approvals in Maps and branches


def _forked(scope: MachineScope, records: Collection[_Record]) -> Iterator[Finding]:
    holder = _fork_around(scope)
    if holder is None:
        return
    part = "iteration" if holder.value.get("Type") == "Map" else "branch"
    for record in records:
        yield Finding(
            "V-APR-15",
            f"this pauses one {part} of {holder.name!r}; the others continue and may ask too",
            record.node.pointer,
            f"ask before or after {holder.name!r} if one decision applies to all",
            at_key=True,
        )


def _fork_around(scope: MachineScope) -> Node | None:
    """Return the innermost Map or Parallel around a machine, None where there is none."""
    around: MachineScope | None = scope
    while around is not None and around.holder is not None:
        if type_of(around.holder.value).concurrent:
            return around.holder
        around = around.outer
    return None
