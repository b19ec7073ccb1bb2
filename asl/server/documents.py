"""Documents that the service has registered, under a name and a content hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.values import Json
from asl.documents.checking import check
from asl.documents.loading import load
from asl.executions.registrations import MACHINE, VERSION, Registration, resolve_arn
from asl.server.problems import NotFound
from asl.server.projects import ServerProject
from asl.service.operations import perform
from asl.service.registration import register_document
from asl.service.service import StatesService
from asl.stores.executions import StoredExecution
from asl.stores.resources import Resource, find_resource, list_resources, put_resource

__all__ = [
    "Revision",
    "document_of",
    "find_document",
    "find_revision",
    "list_documents",
    "publish_document",
    "read_text",
    "reference_arn",
    "registration_of",
    "revision_of",
    "versions_of",
]


class Revision(NamedTuple):
    """A revision of a registered document.

    Attributes:
        name: Name of the document.
        arn: ARN of its state machine.
        hash: SHA-256 of the compiled document.
        version: Number of the published version, None for a current revision that is not published.
        kind: `STANDARD` or `EXPRESS`.
        profile: Name of the profile that it runs with.
        published: Time of its publication in epoch seconds.
        description: What the publisher wrote about it.
        source: Text that it was published as; JSON of the definition without one.
        file: Name of the file of the text, None if unknown.
        dialect: Dialect of the text.
        definition: JSON text of the definition, in states.
    """

    name: str
    arn: str
    hash: str
    version: int | None
    kind: str
    profile: str
    published: float
    description: str | None
    source: str
    file: str | None
    dialect: str
    definition: str

    def document(self) -> Document:
        """Return the document of the text.

        Raises:
            InvalidDocument: It cannot be read.
        """
        if self.source == self.definition:
            return load(self.source.encode(), name=self.file, format="json", imports={})
        return read_text(self.source, self.file, self.dialect)


def read_text(text: str, file: str | None = None, dialect: str | None = None) -> Document:
    """Read the text of a document; it cannot import files.

    Args:
        text: The text, JSON or YAML.
        file: A name for messages, whose ending says the format.
        dialect: Name of the dialect; by default by its shape.

    Raises:
        InvalidDocument: It cannot be read.
        AslError: The dialect is unknown.
    """
    content = text.encode(errors="surrogatepass")
    return load(content, name=file, dialect=dialect, imports={})


async def publish_document(
    project: ServerProject,
    document: Document,
    *,
    name: str | None = None,
    express: bool | None = None,
    profile: str | None = None,
    description: str | None = None,
) -> Revision:
    """Register a document, or replace the revision of its name, and publish a version of it.

    The same content again returns the same version.

    Args:
        project: The project.
        document: The document.
        name: Its name; by default that of the document.
        express: Whether it is an express workflow; by default as the document says.
        profile: Name of the profile; by default `aws` if it passes its rules, else `default`.
        description: A sentence about the version.

    Raises:
        InvalidDocument: It has errors.
        ServiceError: The name is not allowed, or the document is too large.
    """
    is_express = document.express if express is None else express
    service = _service_for(project, document, is_express, profile)
    chosen = name or document.deployed or document.name
    machine = await register_document(service, project.scope, chosen, document, express=is_express)
    session, source = project.store.session, machine.body["source"]
    request: dict[str, Json] = {"stateMachineArn": machine.arn}
    if description is not None:
        request["description"] = description
    answer = await perform(service, "PublishStateMachineVersion", request, project.scope)
    version = find_resource(session, str(answer["stateMachineVersionArn"]))
    assert version is not None
    if version.body.get("source") is None:
        version = version._replace(body={**version.body, "source": source})
        put_resource(session, version)
        session.flush()
    return _version(find_document(project, chosen), version)


def _service_for(
    project: ServerProject, document: Document, express: bool, profile: str | None
) -> StatesService:
    """Return the registry with the rules that a document passes.

    Raises:
        InvalidDocument: It passes none.
        AslError: The profile is unknown.
    """
    if profile not in (None, "aws", "default"):
        raise AslError(f"a document runs with the profile 'aws' or 'default', not {profile!r}")
    if profile != "default":
        report = check(document, profile="aws", express=express)
        if report.ok:
            return project.amazon
        if profile == "aws":
            raise InvalidDocument(report)
    check(document, express=express).raise_for_errors()
    return project.service


def find_document(project: ServerProject, name: str) -> Resource:
    """Return the state machine of a registered document.

    Args:
        project: The project.
        name: Its name, or its ARN.

    Raises:
        NotFound: There is none.
    """
    arn = name if name.startswith("arn:") else f"{project.scope.prefix}:{MACHINE}:{name}"
    found = find_resource(project.store.session, arn)
    if found is None or found.kind != MACHINE:
        raise NotFound(f"there is no document {name!r}")
    return found


def list_documents(project: ServerProject) -> list[Revision]:
    """Return the current revisions of all documents, by name."""
    found = list_resources(project.store.session, MACHINE, project.scope.prefix)
    return sorted((revision_of(each) for each in found), key=lambda each: each.name)


def revision_of(machine: Resource) -> Revision:
    """Return the current revision of a state machine."""
    return _revision(machine, machine.body, None, machine.body["updateDate"], None)


def versions_of(project: ServerProject, machine: Resource) -> list[Revision]:
    """Return the published versions of a document, the newest first."""
    found = list_resources(project.store.session, VERSION, machine.arn)
    return [_version(machine, each) for each in reversed(found)]


def _version(machine: Resource, version: Resource) -> Revision:
    body = version.body
    return _revision(machine, body, version.number, body["creationDate"], body["description"])


def _revision(
    machine: Resource,
    body: Mapping[str, Any],
    version: int | None,
    published: float,
    description: str | None,
) -> Revision:
    source = body.get("source")
    if source is None or source["document"] != body["document"]:  # changed by another client
        source = {"text": body["definition"], "file": None, "dialect": "asl"}
    return Revision(
        machine.body["name"],
        machine.arn,
        body["document"],
        version,
        body["type"],
        body["profile"],
        published,
        description,
        source["text"],
        source["file"],
        source["dialect"],
        body["definition"],
    )


def find_revision(project: ServerProject, reference: str) -> Revision:
    """Return a revision by `NAME`, `NAME:VERSION` or the beginning of its hash.

    Raises:
        NotFound: There is none.
    """
    name, _, version = reference.rpartition(":")
    if name and version.isdecimal() and not reference.startswith("arn:"):
        machine = find_document(project, name)
        for each in versions_of(project, machine):
            if each.version == int(version):
                return each
        raise NotFound(f"the document {name!r} has no version {version}")
    try:
        return _published(project, find_document(project, reference))
    except NotFound:
        found = next(_with_hash(project, reference), None)
        if found is None:
            raise
        return found


def _published(project: ServerProject, machine: Resource) -> Revision:
    """Return the current revision of a document, as the version that was published of it."""
    current = revision_of(machine)
    latest = next(iter(versions_of(project, machine)), None)
    return latest if latest is not None and latest.hash == current.hash else current


def _with_hash(project: ServerProject, text: str) -> Iterator[Revision]:
    """Yield the revisions whose hash begins with a text of at least eight digits."""
    if len(text) < 8:
        return
    for machine in list_resources(project.store.session, MACHINE, project.scope.prefix):
        for each in (*versions_of(project, machine), revision_of(machine)):
            if each.hash.startswith(text):
                yield each


def reference_arn(project: ServerProject, reference: str) -> str:
    """Return the ARN that a reference names: of a version, or of a document with its revisions.

    Args:
        project: The project.
        reference: `NAME`, `NAME:VERSION` or a hash.

    Raises:
        NotFound: There is no such document.
    """
    revision = find_revision(project, reference)
    pinned = revision.version is not None and reference not in (revision.name, revision.arn)
    return f"{revision.arn}:{revision.version}" if pinned else revision.arn


def registration_of(project: ServerProject, revision: Revision) -> Registration:
    """Return what an execution of a revision is registered as.

    Raises:
        NotFound: The revision is gone.
    """
    number = "" if revision.version is None else f":{revision.version}"
    found = resolve_arn(project.store.session, f"{revision.arn}{number}")
    if found is None:
        raise NotFound(f"there is no document {revision.name!r}")
    return found


def document_of(project: ServerProject, stored: StoredExecution) -> Document:
    """Return the document of an execution, with the text it was published as where it is known.

    Raises:
        InvalidDocument: It cannot be read.
    """
    if stored.workflow_id is not None:
        machine = find_resource(project.store.session, stored.workflow_id)
        if machine is not None:
            for each in (revision_of(machine), *versions_of(project, machine)):
                if each.hash == stored.document:
                    return each.document()
    return load(project.store.session.values.document(stored.document), name=stored.workflow)
