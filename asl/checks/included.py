"""What is wrong with a machine that an Include runs is wrong with the Include, too: V-INC-06.

A text that was meant as an expression is the fault of the argument that it is: V-ST-11.
"""

from collections.abc import Iterable, Iterator, Mapping

from asl.checks.workflow import Workflow
from asl.core.diagnostics import Finding, Severity
from asl.core.pointers import split_pointer
from asl.expr.templates import SUFFIX

__all__ = ["blamed", "check"]

SHOWN = 5
"""How many of the faults of one machine are named."""


def check(workflow: Workflow, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the Includes whose machines have errors, by findings that have their severity."""
    machines = {scope.pointer for scope in workflow.scopes if scope.included}
    faults: dict[str, list[Finding]] = {}
    for finding in findings if machines else ():
        if finding.severity is Severity.ERROR:
            for machine in _around(finding.pointer, machines):
                faults.setdefault(machine, []).append(finding)
    for machine, found in faults.items():
        related = tuple((each.pointer, f"{each.code}: {each.message}") for each in found[:SHOWN])
        yield Finding(
            "V-INC-06",
            "what is included here is no valid machine",
            machine,
            related=related,
            severity=Severity.ERROR,
        )


def _around(pointer: str, machines: set[str]) -> Iterator[str]:
    """Yield the machines of Includes within which a place lies."""
    while pointer:
        pointer = pointer.rpartition("/")[0]
        if pointer in machines:
            yield pointer


def blamed(finding: Finding, arguments: Mapping[str, str]) -> Finding:
    """Return a finding at what has caused it: the template, or the argument of an Include."""
    if finding.code != "V-ST-11" or finding.pointer not in arguments:
        return finding
    place = finding.pointer
    while place in arguments:
        place = arguments[place]
    hint = finding.hint
    if hint is not None and SUFFIX in hint:
        hint = f'write "{split_pointer(place)[1]}{SUFFIX}" for what it stands for'
    return finding._replace(pointer=place, hint=hint)
