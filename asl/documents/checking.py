"""Checks of documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from asl.checks import check as check_document
from asl.checks.aws import unreadable
from asl.checks.variables import references
from asl.checks.workflow import split_machines
from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import Document, Loadable
from asl.core.profile import DEFAULT, Profile
from asl.documents.defined_agents import check_bound
from asl.documents.loading import check_names, resolve_document, resolve_profile

__all__ = ["check", "variable_references"]


def check(
    document: Document | Loadable,
    *,
    profile: str | Profile = "default",
    strict: bool = False,
    agents: Collection[str] | None = None,
    resources: Collection[str] | None = None,
    workflows: Collection[str] | None = None,
    tools: Collection[str] | None = None,
    express: bool | None = None,
) -> Report:
    """Check a document and return all errors, warnings and remarks.

    Args:
        document: A document (`asl.load`), or its path, text or dict.
        profile: Rules of the language: `"default"`, `"aws"`, `"lenient"` or a `Profile`.
        strict: Whether every warning is an error; False by default.
        agents: Names of the registered agents, with `*` in patterns; None to check no names. With
            the agents themselves, as `asl.run` takes them, the settings of agents that the
            document defines are checked too.
        resources: The same for resources.
        workflows: The same for workflows.
        tools: Names of the bound tools and servers, for agents that the document defines.
        express: Whether to check for an express execution; None for what the document says, such
            as a template.

    Returns:
        A report with the diagnostics in the order of the document; `report.ok` if it has no error.
        Features that are valid but not executed by this version are information (`EXEC-...`).

    Raises:
        InvalidDocument: The document cannot be read.
        DocumentNotFound: No file exists at the path.
        AslError: The profile is unknown, or an argument is not a collection of names.

    Example:
        >>> report = asl.check("review.asl.json")
        >>> for diagnostic in report.errors:
        ...     print(diagnostic.code, diagnostic.pointer, diagnostic.message)
    """
    chosen = resolve_profile(profile)
    check_names(agents=agents, resources=resources, workflows=workflows, tools=tools)
    try:
        loaded = resolve_document(document)
    except InvalidDocument as refusal:
        if not chosen.aws:
            raise
        raise InvalidDocument(unreadable(refusal.report)) from None
    if agents is None:
        return check_document(
            loaded,
            chosen,
            strict=strict,
            resources=resources,
            workflows=workflows,
            express=express,
        )
    specs = agents if isinstance(agents, Mapping) else dict.fromkeys(agents, "")
    report, defined = check_bound(
        loaded,
        chosen,
        agents=specs,
        resources=resources,
        workflows=workflows,
        tools=tools or (),
        strict=strict,
        express=express,
    )
    return Report((*report, *defined), report.document)


def variable_references(document: Document | Loadable) -> dict[str, list[str]]:
    """Return the variables that each state reads, as AWS's `variableReferences`.

    Args:
        document: A document, or its path, text or dict; it may have errors.

    Returns:
        Sorted variable names without the dollar sign, by the name of the state. States that read
        none are left out.

    Raises:
        InvalidDocument: The document cannot be read.
    """
    return references(split_machines(resolve_document(document).value, DEFAULT))
