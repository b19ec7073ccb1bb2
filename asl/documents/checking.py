"""Checks of documents."""

from __future__ import annotations

from collections.abc import Collection

from asl.checks import check as check_document
from asl.checks.aws import unreadable
from asl.checks.variables import references
from asl.checks.workflow import taken_apart
from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import Document, Loadable
from asl.core.profile import DEFAULT, Profile
from asl.documents.loading import check_names, document_of, profile_of

__all__ = ["check", "variable_references"]


def check(
    document: Document | Loadable,
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
    chosen = profile_of(profile)
    check_names(agents=agents, resources=resources, workflows=workflows)
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


def variable_references(document: Document | Loadable) -> dict[str, list[str]]:
    """Return the variables that each state reads, by its name: AWS's `variableReferences`.

    States that read none are left out; names are sorted and have no dollar. Raises InvalidDocument
    for what cannot be read; a document with other errors is taken as far as it goes.
    """
    return references(taken_apart(document_of(document).value, DEFAULT))
