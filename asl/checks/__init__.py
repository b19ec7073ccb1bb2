"""Layer 4: static checks of a document.

`check` reports every violated rule of the specification with its place. JSON Schemas check the
shape (`structure`); each other group of rules is a module with a `check` function.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from asl.checks import execution, literals
from asl.checks.structure import structure
from asl.checks.workflow import CheckedWorkflow, split_machines
from asl.compose import compose
from asl.core.aws_messages import SCHEMA
from asl.core.codes import CODES, lookup
from asl.core.diagnostics import (
    Finding,
    InvalidDocument,
    Report,
    Severity,
    Wording,
    bounded_suggestions,
    place,
)
from asl.core.diagnostics import raise_for_errors as insist_on
from asl.core.document import Document
from asl.core.lazy import LazyTable
from asl.core.opaque import is_about_opaque, mark_opaque
from asl.core.pointers import resolve_pointer, split_pointer
from asl.core.profile import DEFAULT, Profile
from asl.core.values import Json
from asl.expr.templates import SUFFIX
from asl.states.blocks import AGENT_BLOCKS, DOCUMENT_BLOCKS

__all__ = ["check", "raise_for_errors", "require_values"]

Rule = Callable[[CheckedWorkflow], Iterator[Finding]]


RULES: Final[Mapping[str, Rule]] = LazyTable(
    {
        "states": "asl.checks.states:check",
        "transitions": "asl.checks.transitions:check",
        "approvals": "asl.checks.approvals:check",
        "handlers": "asl.checks.handlers:check",
        "query_languages": "asl.checks.query_languages:check",
        "path_expressions": "asl.checks.path_expressions:check",
        "jsonata_expressions": "asl.checks.jsonata_expressions:check",
        "variables": "asl.checks.variables:check",
        "integrations": "asl.checks.integrations:check",
        "parameters": "asl.checks.parameters:check",
        "interpolations": "asl.checks.interpolations:check",
        "debates": "asl.checks.debates:check",
        "registrations": "asl.checks.registrations:check",
        "agent_blocks": "asl.checks.agent_blocks:check",
        "recursion": "asl.checks.loops:check_recursion",
        "agent_loops": "asl.checks.loops:check_agent_loops",
        "checkpoints": "asl.checks.checkpoints:check",
        "tool_policies": "asl.checks.tool_policies:check",
    }
)
"""The rules by name, each imported when a document needs it."""
ABOUT: Final[Mapping[str, frozenset[str]]] = {
    "approvals": frozenset(("Approval",)),
    "handlers": frozenset(("Retry", "Catch", "Model")),
    "integrations": frozenset(("Resource",)),
    "parameters": frozenset(("Resource",)),
    "debates": frozenset(("Debate",)),
    "agent_blocks": frozenset((*AGENT_BLOCKS, *DOCUMENT_BLOCKS)),
    "recursion": frozenset(("Workflow",)),
    "checkpoints": frozenset(("Checkpoint", "Checkpointing")),
    "tool_policies": frozenset(("Tools", "DefaultTools")),
}
"""Rule -> state types and fields; the rule runs only for a document with one of them."""
OF_THE_AUTHOR = frozenset(("V-CHOICE-06", "V-RETRY-06"))
"""Advice to authors; readers of other languages report their own findings instead."""
ADVISING = frozenset(("agent_loops",))
"""The rules with such advice only; they do not run for documents of other languages."""
OF_EXPRESSIONS = frozenset(("V-CACHE-02", "V-ST-07"))
"""Rules that report an unevaluated expression, as `literals` does."""


@bounded_suggestions()
def check(
    document: Document,
    profile: Profile = DEFAULT,
    *,
    strict: bool = False,
    agents: Collection[str] | None = None,
    resources: Collection[str] | None = None,
    workflows: Collection[str] | None = None,
    for_run: bool = False,
    ignore_blocks: bool = False,
    express: bool | None = None,
) -> Report:
    """Check a document against every rule.

    No rule applies to a placeholder without a value, unless the check is for a run.

    Args:
        document: The document.
        profile: The profile, such as `aws`.
        strict: Report warnings as errors.
        agents: The bound agents; other names draw a warning. None skips the rule.
        resources: The bound resources, likewise.
        workflows: The bound workflows, likewise.
        for_run: Report features that this version does not execute (EXEC-...) as errors instead
            of information.
        ignore_blocks: Report agent blocks that are not executed as warnings, also with *strict*.
        express: Whether to check an express workflow, in the profile `aws`; None for what the
            document says.

    Returns:
        All findings with their places.
    """
    document = compose(document)
    unknown = document.dialect == "asl" and not for_run
    workflow = split_machines(
        mark_opaque(document.value) if unknown else document.value,
        profile,
        agents,
        resources,
        document.express if express is None else express,
        workflows,
        document.name,
        _heads(document),
    )
    graded = _all_graded(workflow, _found(document, workflow), strict=strict, hints=document.hints)
    unexecuted = execution.check(workflow, for_run=for_run, ignore_blocks=ignore_blocks)
    return place(document, [*graded, *unexecuted])


@bounded_suggestions()
def raise_for_errors(document: Document, profile: Profile, *, ignore_blocks: bool = False) -> None:
    """Check that a document can run.

    Findings get their severities and places only if there is an error, because that is slow.

    Raises:
        InvalidDocument: The document has errors; its report has all findings.
    """
    document = compose(document)
    workflow = split_machines(document.value, profile, name=document.name, heads=_heads(document))
    found = _found(document, workflow)
    unexecuted = [*execution.check(workflow, for_run=True, ignore_blocks=ignore_blocks)]
    if any(_severity(each, profile) is Severity.ERROR for each in (*found, *unexecuted)):
        graded = _all_graded(workflow, found, hints=document.hints)
        insist_on(document, [*graded, *unexecuted])


def require_values(document: Document) -> None:
    """Check that no placeholder without a value takes the place of anything but a string.

    Raises:
        InvalidDocument: A machine, a state or another value of a state is such a placeholder.
    """
    document = compose(document)
    if mark_opaque(document.value) is document.value:
        return
    report = check(document, for_run=True)
    unknown = tuple(each for each in report.errors if _is_placeholder(document.value, each.pointer))
    if unknown:
        raise InvalidDocument(Report(unknown, report.document))


def _is_placeholder(value: Json, pointer: str) -> bool:
    found = resolve_pointer(value, pointer)
    return type(found) is str and mark_opaque(found) is not found


def _is_interval_of_platform(document: Document, found: Finding) -> bool:
    """Whether a document was converted from a language whose platform has such an interval."""
    if found.code != "V-RETRY-06" or found.severity is not Severity.WARNING:
        return False
    metadata = document.value.get("Metadata")
    names = metadata if isinstance(metadata, dict) else ()
    return any(CODES.of_namespace(name) is not None for name in names)


def _found(document: Document, workflow: CheckedWorkflow) -> list[Finding]:
    """Return all findings of a document, possibly with duplicates."""
    profile = workflow.profile
    foreign = document.dialect != "asl" and not profile.aws
    rules = [
        RULES[name]
        for name in RULES
        if not (foreign and name in ADVISING)
        and not (name in ABOUT and ABOUT[name].isdisjoint(workflow.words))
    ]
    found = (_at_cause(each, _arguments(document)) for each in _findings(workflow, rules))
    if workflow.value is not document.value:
        found = (
            each for each in found if not is_about_opaque(workflow.value, each.pointer, each.at_key)
        )
    if not profile.aws:
        found = (each for each in found if not _is_interval_of_platform(document, each))
    if foreign:
        replaced = {lookup(each.code).replaces for each in _composing(document)}
        found = (
            each
            for each in found
            if each.code not in OF_THE_AUTHOR
            and each.code not in replaced
            and not _alone(workflow, each)
        )
    findings = [*document.findings, *_composing(document), *found]
    if not profile.aws:
        return findings

    from asl.checks import aws

    size = aws.check_size(document, profile.quotas.definition_characters)
    return [*aws.adapt_findings(findings), *aws.check(workflow), *size]


def _alone(workflow: CheckedWorkflow, finding: Finding) -> bool:
    """Return whether a finding concerns an approval in the only branch of a Parallel."""
    if finding.code != "V-APR-15":
        return False
    holder, found, _ = finding.pointer.rpartition("/Branches/0/")
    branches = resolve_pointer(workflow.value, f"{holder}/Branches") if found else None
    return type(branches) is list and len(branches) == 1


def _all_graded(
    workflow: CheckedWorkflow,
    findings: list[Finding],
    *,
    strict: bool = False,
    hints: Mapping[str, str],
) -> list[Finding]:
    """Return the distinct findings with their severities, and those of Includes with errors."""
    graded = [
        _graded(_advised(workflow, each, hints), workflow.profile, strict)
        for each in dict.fromkeys(findings)
    ]
    return [*graded, *_include_findings(workflow, graded)]


def _composing(document: Document) -> tuple[Finding, ...]:
    return () if document.composition is None else document.composition.findings


def _heads(document: Document) -> Mapping[str, Mapping[str, Json]]:
    return {} if document.composition is None else document.composition.heads


def _arguments(document: Document) -> Mapping[str, str]:
    return {} if document.composition is None else document.composition.arguments


def _findings(workflow: CheckedWorkflow, rules: Iterable[Rule]) -> Iterator[Finding]:
    """Yield the findings of structure, rules and literals without duplicates.

    A fault of structure hides findings of the same rule, and of literals, at the same place.
    """
    well = type(workflow.value) is dict
    meant = {each.pointer: each for each in literals.check(workflow)} if well else {}
    misshapen = set()
    for finding in structure(workflow):
        misshapen.add((finding.code, finding.pointer))
        literal = meant.pop(finding.pointer, None)
        if literal is not None and finding.hint is None:
            finding = finding._replace(hint=literal.hint)
        yield finding
    for rule in rules if well else ():
        for finding in rule(workflow):
            if finding.code in OF_EXPRESSIONS:
                meant.pop(finding.pointer, None)
            if (finding.code, finding.pointer) not in misshapen:
                yield finding
    yield from meant.values()


_PLACEHOLDER = r"\$\{([^${}]+)\}"


def _advised(workflow: CheckedWorkflow, finding: Finding, hints: Mapping[str, str]) -> Finding:
    """Add a hint to a finding about a placeholder or a reference of a deployment tool."""
    if finding.hint and finding.code != "V-TASK-02":
        return finding
    value = resolve_pointer(workflow.value, finding.pointer)
    if finding.code == "V-TASK-02" and type(value) is str and value in hints:
        return finding._replace(hint=hints[value])
    match = re.search(_PLACEHOLDER, value) if type(value) is str and not finding.hint else None
    if match is None:
        return finding
    return finding._replace(hint=f"give the placeholder a value: --var {match[1]}=...")


def _graded(finding: Finding, profile: Profile, strict: bool) -> Finding:
    severity = _severity(finding, profile)
    aws = _worded(finding, severity) if profile.aws else None
    if strict and severity is Severity.WARNING:
        severity = Severity.ERROR
    return finding._replace(severity=severity, aws=aws)


def _worded(finding: Finding, severity: Severity) -> Wording:
    """Return AWS's wording of a finding with AWS's code."""
    wording = finding.aws or Wording()
    if wording.code is not None:
        return wording
    others = SCHEMA if severity is Severity.ERROR else None
    return wording._replace(code=lookup(finding.code).aws_code or others)


def _severity(finding: Finding, profile: Profile) -> Severity:
    if finding.severity is not None:
        return finding.severity
    rule = lookup(finding.code)
    if profile.aws and rule.aws_severity is not None:
        return Severity(rule.aws_severity)
    return Severity(rule.severity)


MAX_RELATED = 5
"""The number of errors of one machine that V-INC-06 lists."""


def _include_findings(workflow: CheckedWorkflow, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield V-INC-06 for Includes of machines with errors; the findings have severities."""
    machines = {scope.pointer for scope in workflow.scopes if scope.is_included}
    faults: dict[str, list[Finding]] = {}
    for finding in findings if machines else ():
        if finding.severity is Severity.ERROR:
            for machine in _around(finding.pointer, machines):
                faults.setdefault(machine, []).append(finding)
    for machine, found in faults.items():
        related = tuple(
            (each.pointer, f"{each.code}: {each.message}") for each in found[:MAX_RELATED]
        )
        yield Finding(
            "V-INC-06",
            "the included machine has errors",
            machine,
            related=related,
            severity=Severity.ERROR,
        )


def _around(pointer: str, machines: set[str]) -> Iterator[str]:
    """Yield the included machines around a place, the innermost first."""
    while pointer:
        pointer = pointer.rpartition("/")[0]
        if pointer in machines:
            yield pointer


def _at_cause(finding: Finding, arguments: Mapping[str, str]) -> Finding:
    """Return a V-ST-11 finding in an included machine at the argument of the Include."""
    if finding.code != "V-ST-11" or finding.pointer not in arguments:
        return finding
    place = finding.pointer
    while place in arguments:
        place = arguments[place]
    hint = finding.hint
    if hint is not None and SUFFIX in hint:
        hint = f'write "{split_pointer(place)[1]}{SUFFIX}" for its value'
    return finding._replace(pointer=place, hint=hint)
