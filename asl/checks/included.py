"""What is wrong with a machine that an Include runs is wrong with the Include, too: V-INC-06."""

from collections.abc import Iterable, Iterator

from asl.checks.workflow import Workflow
from asl.core.diagnostics import Finding, Severity

__all__ = ["check"]

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
