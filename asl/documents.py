"""The front door for documents: read, check, compile.

What a call needs is loaded by that call: importing this costs little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from asl.core.errors import AslError, InvalidDocument
from asl.core.event_loop import has_running_loop

if TYPE_CHECKING:
    import os

    from asl.bindings import Bindings
    from asl.core.diagnostics import Report
    from asl.core.document import Document, What
    from asl.core.profile import Profile
    from asl.core.values import Json
    from asl.dialects.base import Conversion
    from asl.graphs.difference import Difference
    from asl.graphs.planning import Plan
    from asl.program import Program

_STARTS: Final = re.compile(r":(?:aws-sdk:sfn|states):start(?:Sync)?Execution")

Prepared = TypeVar("Prepared")

__all__ = [
    "check",
    "compile",
    "convert",
    "detect",
    "diff",
    "document_of",
    "graph",
    "is_small",
    "load",
    "plan",
    "prepare",
    "profile_of",
    "program_of",
    "startable",
    "variable_references",
    "with_siblings",
]


def load(
    what: What,
    *,
    name: str | None = None,
    format: str | None = None,
    dialect: str | None = None,
    reading: Mapping[str, Any] | None = None,
    resource: str | None = None,
    variables: Mapping[str, Json] | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Callable[[str], What] | Mapping[str, What] | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> Document:
    """Read a document from a path, text, bytes, dict or open file, with all that it imports.

    A string that begins with `{` or has several lines is text, any other a path. A workflow in
    another language is known by its shape, or by the name of its `dialect`; `reading` are the
    options with which that is read. In a template of SAM or
    CloudFormation and in a Terraform file, `resource` names the state machine; it may be left out
    where there is only one. `variables` are the values of placeholders (`${Name}`) and of
    parameters there.

    Files that a document imports, or that a template names, are read below its own folder, or below
    `root`. `imports` provides everything else by its source: what a URL or an entry of a registry
    stands for. `parameters` are the values for a document with `Parameters` that runs by itself.

    Raises InvalidDocument (with every fault and its place), DocumentNotFound, and AslError where it
    is not clear which state machine is meant or a parameter is not declared. What is wrong with an
    import is found by `check`.
    """
    from asl.dialects import load as load_document

    values: dict[str, Any] = {"variables": variables, "parameters": parameters}
    for named, given in values.items():
        if not (given is None or isinstance(given, Mapping)):
            found = type(given).__name__
            raise AslError(f"{named} are a mapping from names to values, not {found}")
        _check_names(**{named: given})
    return load_document(
        what,
        name=name,
        format=format,
        dialect=dialect,
        reading=reading,
        resource=resource,
        variables=variables or {},
        root=root,
        imports=imports,
        parameters=parameters,
    )


def check(
    document: Document | What,
    *,
    profile: str | Profile = "default",
    strict: bool = False,
    agents: Collection[str] | None = None,
    resources: Collection[str] | None = None,
    workflows: Collection[str] | None = None,
    express: bool = False,
) -> Report:
    """Check a document and return everything found, ordered by place; `report.ok` if no error.

    `strict` makes every warning an error. `agents`, `resources` and `workflows` are the names and
    patterns that are registered; `express` checks for an express execution. What is right but not
    executed by this version is reported as information (`EXEC-...`).

    Raises InvalidDocument for what cannot be read, DocumentNotFound for a path without a file, and
    AslError for an unknown profile or names that are one text.
    """
    from asl.checks import check as check_document
    from asl.checks.aws import unreadable

    chosen = profile_of(profile)
    _check_names(agents=agents, resources=resources, workflows=workflows)
    try:
        loaded = document_of(document)
    except InvalidDocument as refusal:
        if not chosen.aws:
            raise
        raise InvalidDocument(unreadable(refusal.report)) from None
    return check_document(
        loaded,
        chosen,
        strict=strict,
        agents=agents,
        resources=resources,
        workflows=workflows,
        express=express,
    )


def _check_names(**given: Collection[str] | None) -> None:
    """Raise AslError for what is no collection of names: a text would be one of its letters."""
    for what, names in given.items():
        if names is None:
            continue
        if isinstance(names, str) or not isinstance(names, Collection):
            raise AslError(f"{what} are a list of names, not {type(names).__name__}")
        for name in names:
            if not isinstance(name, str):
                raise AslError(f"{what} are names, not {type(name).__name__}")


def variable_references(document: Document | What) -> dict[str, list[str]]:
    """Return the variables that each state reads, by its name: AWS's `variableReferences`.

    States that read none are left out; names are sorted and have no dollar. Raises InvalidDocument
    for what cannot be read; a document with other errors is taken as far as it goes.
    """
    from asl.checks.variables import references
    from asl.checks.workflow import taken_apart
    from asl.core.profile import DEFAULT

    return references(taken_apart(document_of(document).value, DEFAULT))


def compile(
    document: Document | What,
    *,
    profile: str | Profile = "default",
    ignore_blocks: bool = False,
) -> Program:
    """Check a document and compile it; raises InvalidDocument, which carries the report.

    A document that uses something which this version does not execute is refused;
    `ignore_blocks` runs it without its agent blocks: their limits are not enforced.
    """
    from asl.checks import insist
    from asl.compiler import compile_workflow
    from asl.compose import runnable

    loaded, chosen = runnable(document_of(document)), profile_of(profile)
    insist(loaded, chosen, ignore_blocks=ignore_blocks)
    return compile_workflow(loaded.whole, chosen, loaded.name)


def convert(
    document: Document | What,
    to: str,
    *,
    implicit_retry: bool = True,
    reading: Mapping[str, Any] | None = None,
    **writing: Any,
) -> Conversion:
    """Return a document in another language: `text`, `document` (its value), `losses`, `ok`.

    `to` is `asl`, `amazon`, `codemie`, `contenox`, `flujo`, or what a package offers under the
    entry point `asl.dialects`. Each loss is a diagnostic: `error` where behaviour is lost,
    `warning` where it is approximated; its hint says what was done instead. `ok` if no
    behaviour is lost. Without *implicit_retry* the retries are left out that a platform makes
    unasked; that and other options for `reading` are for what is read here. All further options are
    the writer's (docs/convert.md): `names` say what agents are called at Amazon, and what resources
    are called here; `tools` which agents are no assistants in a workflow.

    Raises InvalidDocument for what cannot be read, and AslError for a language or an option that is
    not known.
    """
    from asl.core.document import Document
    from asl.dialects import converted
    from asl.dialects import load as load_document

    if not isinstance(document, Document):
        asked = {} if implicit_retry else {"implicit_retry": False}
        document = load_document(document, reading={**asked, **(reading or {})})
    return converted(document, to, writing)


def detect(what: What) -> str:
    """Return the name of the language that a document is written in, by its shape.

    That is `asl` for the state language itself, Amazon's included, and for what has no other shape.
    Nothing is checked. Raises DocumentNotFound for a path without a file.
    """
    from asl.core.document import opened, read
    from asl.dialects import NATIVE
    from asl.dialects import detect as by_shape

    found = by_shape(read(what) if isinstance(what, dict) else opened(what))
    return NATIVE if found is None else found.name


def graph(document: Document | What, *, format: str = "mermaid") -> str:
    """Draw a document: its states, the machines within, and its transitions.

    `format` is `mermaid`, `dot` or `svg`; the latter needs nothing else. A document with errors is
    drawn as far as it goes. Raises AslError for another format, and for a document of more than
    5,000 states and transitions as `svg`.
    """
    from asl.dialects import worded
    from asl.graphs import FORMATS, graph_of

    if format not in FORMATS:
        raise AslError(f"no drawing is called {format!r}; there are {', '.join(FORMATS)}")
    loaded = document_of(document)
    return FORMATS[format](graph_of(loaded.whole, worded(loaded)))


def plan(
    document: Document | What,
    *,
    profile: str | Profile = "default",
    prices: Mapping[str, Any] | None = None,
    limit: int = 100,
) -> Plan:
    """Say what a document may do before anything runs: its ways, whom it asks, what it may cost.

    No more than *limit* ways are listed. The bounds of cost and tokens hold for agents that keep to
    what budgets set aside for a call; without a limit there is none. `prices` are those of `run`.
    Raises InvalidDocument for a document with errors.
    """
    from asl.effects.prices import Prices
    from asl.graphs.planning import planned

    loaded = document_of(document)
    check(loaded, profile=profile).raise_for_errors()
    return planned(loaded.whole, Prices(prices), limit)


def diff(before: Document | What, after: Document | What) -> Difference:
    """Say what two documents differ in, as graphs: states, transitions, data flow, behaviour.

    The order of states and of the members of objects means nothing. `same` says whether there is
    nothing but remarks. Documents of two languages are compared as they run, and as either is said
    in plain paths on the way to a third one; the fewer differences are told.

    Raises InvalidDocument for what cannot be read, DocumentNotFound for a path without a file.
    """
    from asl.dialects import NATIVE, said_plainly, worded
    from asl.graphs.difference import difference, without_originals

    left, right = document_of(before), document_of(after)
    read = NATIVE not in (left.dialect, right.dialect)
    found = difference(left.whole, right.whole, (worded(left), worded(right)), read=read)
    if left.dialect == right.dialect or found.same:
        return without_originals(found, left, right)
    return min(found, difference(said_plainly(left), said_plainly(right)), key=len)


def document_of(what: Document | What) -> Document:
    """Return a document as it is, and read anything else."""
    from asl.core.document import Document

    return what if isinstance(what, Document) else load(what)


def program_of(
    workflow: Program | Document | What, profile: str | Profile | None, ignore_blocks: bool
) -> Program:
    """Return a program as it is, and compile anything else."""
    from asl.program import Program

    if not isinstance(workflow, Program):
        return compile(
            workflow, profile="default" if profile is None else profile, ignore_blocks=ignore_blocks
        )
    if profile is not None or ignore_blocks:
        raise AslError("a program is compiled already: give profile and ignore_blocks to compile")
    return workflow


SMALL: Final = 10_000
"""Characters, or values, of a document that is read and compiled in a few milliseconds."""


async def prepare(work: Callable[..., Prepared], workflow: Any, *arguments: Any) -> Prepared:
    """Return `work(workflow, *arguments)`.

    Where an event loop is running, a large document, or one in a file, is read, checked and
    compiled in a thread, so that the event loop does not wait for it.
    """
    if not has_running_loop() or is_small(workflow):
        return work(workflow, *arguments)
    from asyncio import get_running_loop

    from asl.effects.threads import run_in_thread

    prepared: Prepared = await run_in_thread(get_running_loop(), work, workflow, *arguments)
    return prepared


def is_small(workflow: Program | Document | What | None) -> bool:
    """Whether a workflow is compiled already, or so small that it is compiled in no time."""
    from asl.core.document import Document
    from asl.program import Program

    if workflow is None or isinstance(workflow, Program):
        return True
    if isinstance(workflow, Document):
        workflow = workflow.whole
    if isinstance(workflow, dict):
        return _has_few_values(workflow)
    if isinstance(workflow, str):
        is_text = "\n" in workflow or workflow.lstrip().startswith("{")
        return is_text and len(workflow) <= SMALL
    return isinstance(workflow, bytes) and len(workflow) <= SMALL


def _has_few_values(value: Json) -> bool:
    """Whether a value has few members, on all levels together, and no long text."""
    count, todo = 0, [value]
    while todo and count <= SMALL // 10:
        each = todo.pop()
        count += 1 + len(each) // 100 if isinstance(each, str) else 1
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return not todo and count <= SMALL // 10


def startable(
    document: Document, given: Mapping[str, Program | Document | What] | None
) -> Mapping[str, Program | Document | What] | None:
    """Return the workflows that a document may start: those given, and those of its template.

    The others of a template are read only for a document that starts executions.
    """
    from asl.core.values import compact

    if document.siblings is None or not _STARTS.search(compact(document.value)):
        return given
    return {**document.siblings(), **(given or {})} or given


def with_siblings(
    workflow: Program | Document | What, bindings: Bindings
) -> tuple[Program | Document, Bindings]:
    """Return a workflow, read, and its bindings with the others of its template as workflows."""
    from asl.program import Program

    if isinstance(workflow, Program):
        return workflow, bindings
    document = document_of(workflow)
    found = startable(document, bindings.get("workflows"))
    return document, bindings if found is None else {**bindings, "workflows": found}


def profile_of(profile: str | Profile) -> Profile:
    """Return the profile of a name; raises AslError for one that does not exist."""
    from asl.core.profile import PROFILES, Profile, profile_named

    if isinstance(profile, Profile):
        return profile
    found = profile_named(profile) if isinstance(profile, str) else None
    if found is None:
        raise AslError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    return found
