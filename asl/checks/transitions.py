"""Where a machine goes: V-TOP-04, V-TOP-11..13, V-ST-02, V-ST-03, V-TPL-05, V-APR-04,
V-MOD-01, V-MOD-02.

Specification 1.4, 2.1, 9.2 and 9.4.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import NamedTuple

from asl.checks.workflow import CheckedWorkflow, MachineScope, entries, handlers, objects, text
from asl.compose import modules
from asl.core import aws_messages
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.values import Opaque
from asl.states import UNKNOWN, type_of
from asl.states.base import Node, has_output_label, has_parameter

__all__ = ["check", "next_states", "targets"]


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with starts, targets and ends, machine by machine."""
    for scope in workflow.scopes:
        checker = _Machine(workflow, scope, {node.name: next_states(node) for node in scope.nodes})
        yield from checker.starts()
        yield from checker.ways()
        yield from checker.wrong_targets()
        yield from checker.reach()


class _Machine(NamedTuple):
    workflow: CheckedWorkflow
    scope: MachineScope
    after: Mapping[str, list[str]]
    """The names of the states that each state may go on to."""

    @property
    def loose(self) -> bool:
        """Whether this machine has other forms, by the values of parameters or by what uses it."""
        return self.workflow.has_unfilled_parameters or self.module or self.scope.template

    @property
    def module(self) -> bool:
        return self.workflow.module and self.scope.outer is None

    @property
    def opaque(self) -> bool:
        """Whether a transition leads to a state that only a deployment names."""
        return type(self.scope.value.get("StartAt")) is Opaque or any(
            map(_is_opaque, self.scope.nodes)
        )

    # The start

    def starts(self) -> Iterator[Finding]:
        start = text(self.scope.value, "StartAt")
        if self.module:
            yield from modules.check(self.scope.value, "")
        elif start is not None and self.scope.names:
            yield from self.target(f"{self.scope.pointer}/StartAt", start, "V-TOP-04")

    # Next or End

    def ways(self) -> Iterator[Finding]:
        for node in self.scope.nodes:
            kind = type_of(node.value)
            if kind is UNKNOWN or not kind.takes_next:
                continue
            ends = node.value.get("End") is True
            if "Next" in node.value and ends:
                yield Finding(
                    "V-ST-02",
                    "'Next' and 'End' exclude each other",
                    node.pointer,
                    "remove one of them",
                    related=(
                        (node.at("Next"), "'Next' is here"),
                        (node.at("End"), "'End' is here"),
                    ),
                    at_key=True,
                    aws=Wording(aws_messages.at_most_one("Next", "End")),
                )
            elif "Next" not in node.value and node.value.get("End", False) is False:
                yield from self.no_way(node)

    def no_way(self, node: Node) -> Iterator[Finding]:
        if self.module:
            return  # the next state in document order follows (Specification 9.4)
        if node.value.get("Type") == "Approval":
            if "Choices" not in node.value and "Default" not in node.value:
                yield Finding(
                    "V-APR-04",
                    f"approval {node.name!r} has neither 'Choices', 'Default', 'Next' nor 'End'",
                    node.pointer,
                    "add 'Choices', 'Default', 'Next' or \"End\": true",
                    at_key=True,
                )
        elif self.scope.template and has_output_label(node.value, node.query_language):
            yield Finding(
                "V-TPL-05",
                f"the label in 'Output' makes {node.name!r} an end",
                node.at("Output"),
                'write "End": true as well',
                at_key=True,
            )
        else:
            yield Finding(
                "V-ST-02",
                f"state {node.name!r} has neither 'Next' nor 'End'",
                node.pointer,
                'add "Next" or "End": true',
                at_key=True,
                aws=Wording(aws_messages.exactly_one("Next", "End")),
            )

    # Targets

    def wrong_targets(self) -> Iterator[Finding]:
        for node in self.scope.nodes:
            if not self.scope.names.issuperset(self.after[node.name]):
                for pointer, name in targets(node):
                    yield from self.target(pointer, name, "V-ST-03")

    def target(self, pointer: str, name: str, code: str) -> Iterator[Finding]:
        if name in self.scope.names or (self.scope.unfilled and has_parameter(name)):
            return
        if "{{" in name and not self.scope.unfilled:
            yield Finding(
                "V-TOP-13",
                f"{name!r} is filled in only in a template",
                pointer,
                "declare the parameter in 'Parameters' at the top, or name a state",
            )
            return
        yield Finding(
            code,
            f"there is no state {name!r} in this machine",
            pointer,
            self.hint(name),
            aws=Wording(f"Missing 'Next' target: {name}"),
        )

    def hint(self, name: str) -> str | None:
        if name.casefold() == "end":
            return 'a state that ends its machine says "End": true instead'
        if name in self.workflow.names:
            return "it belongs to another machine: end this one and continue in the outer one"
        return self.workflow.suggestions.near(name, self.scope.names)

    # Reachability

    def reach(self) -> Iterator[Finding]:
        roots = self.roots()
        if roots is None or any("{{" in root for root in roots):
            return
        found = [*self.unreachable_states(roots)]
        if found and not self.opaque:
            yield from found

    def unreachable_states(self, roots: list[str]) -> Iterator[Finding]:
        """Yield the states that no known transition leads to, and machines without an end."""
        reached = self.reachable_states(roots)
        # AWS refuses a state that none leads to, not one that only such states do (measured); and
        # the former also with a StartAt that names no state (aws-cloudformation/cfn-lint#4074).
        led = {*chain.from_iterable(self.after.values())} if self.workflow.profile.aws else set()
        for node in self.scope.nodes:
            if node.name not in reached:
                passes = node.name in led
                if passes and not roots:
                    continue
                yield Finding(
                    "V-TOP-11",
                    f"no transition leads to {node.name!r}",
                    node.pointer,
                    severity=Severity.WARNING if self.loose or passes else None,
                    at_key=True,
                    aws=Wording(code="")
                    if passes
                    else Wording(f'State "{node.name}" is not reachable.'),
                )
        # AWS refuses a workflow without any end, even inside; a machine inside it may loop for
        # ever (recorded, measured).
        whole = self.workflow.profile.aws and self.scope.outer is None
        if whole and not any(map(ends, self.workflow.nodes())):
            wording = Wording("Workflow has no terminal state")
            yield self.endless("no state ends this workflow", Severity.ERROR, wording)
        elif (
            roots
            and reached.issubset(node.name for node in self.scope.nodes)
            and not any(self.may_end(node) for node in self.scope.nodes if node.name in reached)
        ):
            message = "no state that can be reached ends this machine"
            yield self.endless(message, None, Wording(code=""))

    def endless(self, message: str, severity: Severity | None, wording: Wording) -> Finding:
        return Finding(
            "V-TOP-12",
            message,
            f"{self.scope.pointer}/States",
            'give the last state "End": true',
            severity=severity,
            at_key=True,
            aws=wording,
        )

    def roots(self) -> list[str] | None:
        """Return where the machine can be entered, None where that is not known."""
        names = self.scope.names
        if self.module:
            exports = [name for name in entries(self.workflow.value, "Exports") if name in names]
            return exports or [node.name for node in self.scope.nodes] or None
        start = text(self.scope.value, "StartAt")
        if start in names or (start and "{{" in start):
            return [start]
        return [] if start and names and self.workflow.profile.aws else None

    def reachable_states(self, roots: list[str]) -> set[str]:
        nodes = {node.name: node for node in self.scope.nodes}
        order = [node.name for node in self.scope.nodes]
        beside = dict(pairwise(order)) if self.module else {}
        reached: set[str] = set()
        todo = list(roots)
        while todo:
            name = todo.pop()
            if name in reached or name not in self.scope.names:
                continue
            reached.add(name)
            if name in nodes:
                todo += self.after[name]
                if name in beside and not nodes[name].value.keys() & {"Next", "End"}:
                    todo.append(beside[name])
        return reached

    def may_end(self, node: Node) -> bool:
        """Return whether the machine may end at this state, or has an unknown target there."""
        return ends(node) or not self.scope.names.issuperset(self.after[node.name])


def _is_opaque(node: Node) -> bool:
    """Whether the states that follow are not all known before deployment."""
    state = node.value
    found = [state.get(field) for field in ("Type", "Next", "End", "Default", "Choices", "Catch")]
    for listed in found[4:]:
        for entry in listed if type(listed) is list else ():
            found.append(entry.get("Next") if type(entry) is dict else entry)
    return any(type(each) is Opaque for each in found)


def ends(node: Node) -> bool:
    """Whether a machine may end at this state."""
    if type_of(node.value).terminal or node.value.get("End") is True:
        return True
    # A state without any way on is a fault of its own, or an end in a template or module.
    return not next_states(node)


_WAYS = (("Choices", objects), ("Catch", handlers))
"""The fields whose entries name the next state, and what takes such a field apart."""


def next_states(node: Node) -> list[str]:
    """Return the names of the states that this one may go on to."""
    state = node.value
    found = [state.get("Next"), state.get("Default")]
    for field, listed in _WAYS:
        if field in state:
            found += [entry.get("Next") for _, entry in listed(state, field)]
    return [name for name in found if type(name) is str]


def targets(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the same, each with the pointer of where it is named."""
    for field in ("Next", "Default"):
        name = text(node.value, field)
        if name is not None:
            yield node.at(field), name
    for field, listed in _WAYS:
        for index, entry in listed(node.value, field):
            name = text(entry, "Next")
            if name is not None:
                yield node.at(field, index, "Next"), name
