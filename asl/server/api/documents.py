"""Routes of documents: publish, list, check, convert, draw, plan."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.render.formats import diagnostic_to_json, reports_to_json
from asl.documents.checking import check
from asl.documents.conversion import convert
from asl.documents.drawing import graph
from asl.documents.planning import plan
from asl.expr.times import format_timestamp
from asl.server.actions import delete_document
from asl.server.api.access import Operator, Viewer
from asl.server.api.models import (
    CheckRequest,
    CheckResult,
    ConversionResult,
    ConvertRequest,
    DocumentDetail,
    DocumentPage,
    DocumentSummary,
    DocumentText,
    Drawing,
    PlanResult,
    PublishRequest,
    Reason,
    reason_of,
)
from asl.server.audit import record_action
from asl.server.documents import (
    Revision,
    find_document,
    find_revision,
    list_documents,
    publish_document,
    read_text,
    versions_of,
)
from asl.server.projects import ServerProject

__all__ = ["optional_document", "router"]

router = APIRouter(tags=["documents"])


@router.post("/documents", status_code=201)
async def publish(body: PublishRequest, access: Operator) -> DocumentSummary:
    """Publish a document under a name; the same content again gives the same version."""
    revision = await publish_document(
        access.project,
        read_text(body.text, body.file, body.dialect),
        name=body.name,
        express=body.type == "EXPRESS",
        profile=body.profile,
        description=body.description,
    )
    details = {"version": revision.version, "hash": revision.hash}
    record_action(access, "document.publish", revision.name, details)
    return summary(revision)


@router.get("/documents")
def list_all(access: Viewer) -> DocumentPage:
    """List the current revisions of the published documents."""
    return DocumentPage(documents=[summary(each) for each in list_documents(access.project)])


@router.get("/documents/{reference}")
def describe(reference: str, access: Viewer) -> DocumentDetail:
    """Show a document by `NAME`, `NAME:VERSION` or hash."""
    found = find_revision(access.project, reference)
    versions = versions_of(access.project, find_document(access.project, found.arn))
    return DocumentDetail(
        **summary(found).model_dump(),
        text=found.source,
        file=found.file,
        definition=found.definition,
        versions=[summary(each) for each in versions],
    )


@router.delete("/documents/{name}", status_code=204)
async def delete(name: str, access: Operator, body: Reason | None = None) -> None:
    """Delete a document with its versions; its executions continue."""
    await delete_document(access, name, reason_of(body))


@router.post("/check")
def check_text(body: CheckRequest, access: Viewer) -> CheckResult:
    """Check a document and return all findings."""
    report = check(
        given_document(access.project, body),
        profile=body.profile,
        strict=body.strict,
        express=body.type == "EXPRESS",
    )
    return CheckResult.model_validate(reports_to_json([report]))


@router.post("/convert")
def convert_text(body: ConvertRequest, access: Viewer) -> ConversionResult:
    """Convert a document to another dialect, with the losses."""
    done = convert(given_document(access.project, body), body.to)
    losses = [diagnostic_to_json(each) for each in done.losses]
    return ConversionResult(text=done.text, ok=done.ok, losses=losses, files=dict(done.files))


@router.post("/graph")
def draw(
    body: DocumentText, access: Viewer, format: Literal["mermaid", "dot", "svg"] = "svg"
) -> Drawing:
    """Draw a document."""
    return Drawing(format=format, text=graph(given_document(access.project, body), format=format))


@router.post("/plan")
def plan_text(body: DocumentText, access: Viewer) -> PlanResult:
    """Show what a document may do and cost, without running it."""
    return PlanResult(plan=plan(given_document(access.project, body)).to_json())


def given_document(project: ServerProject, given: DocumentText) -> Document:
    """Return the document of a request.

    Raises:
        AslError: The request has neither or both of text and reference.
        NotFound: The reference names none.
        InvalidDocument: The document cannot be read.
    """
    if (given.text is None) == (given.document is None):
        raise AslError("give either 'text' or 'document'")
    if given.document is not None:
        return find_revision(project, given.document).document()
    return read_text(given.text or "", given.file, given.dialect)


def optional_document(project: ServerProject, given: DocumentText) -> Document | None:
    """Return the document of a request, None without one; see `given_document`."""
    has_one = given.text is not None or given.document is not None
    return given_document(project, given) if has_one else None


def summary(revision: Revision) -> DocumentSummary:
    """Return the listed form of a revision."""
    return DocumentSummary.model_validate({
        "name": revision.name,
        "arn": revision.arn,
        "hash": revision.hash,
        "version": revision.version,
        "type": revision.kind,
        "profile": revision.profile,
        "dialect": revision.dialect,
        "published": format_timestamp(revision.published),
        "description": revision.description,
    })  # fmt: skip
