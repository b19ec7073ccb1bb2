"""Pages of documents: the list with a form to publish, and one document with its start form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from asl.core.diagnostics import InvalidDocument, Report
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.schemas import faults, input_schema
from asl.core.values import Json, compact
from asl.dialects.conversion import part_descriptions
from asl.documents.checking import check
from asl.graphs.model import graph_of
from asl.server.access.authorization import access_of
from asl.server.access.principal import OPERATOR, VIEWER
from asl.server.actions import delete_document, start_execution
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
from asl.server.pages.execution import drawing_of
from asl.server.pages.forms import (
    go_to,
    json_field,
    optional_field,
    posted_form,
    reason_in,
    upload_or_field,
)
from asl.server.pages.rendering import quoted, render
from asl.server.pages.sources import SourceLine, numbered_lines
from asl.server.problems import status_of
from asl.server.projects import Access
from asl.server.views import execution_key
from asl.stores.executions import ExecutionFilter

__all__ = ["ROUTES"]

RECENT: Final = 10
"""Executions on the page of a document."""
EXAMPLE: Final = "InputExample"
"""Member of the `Metadata` of a document that fills its start form."""
MOST_FIELDS: Final = 40
SIMPLE: Final = ("string", "integer", "number", "boolean")
"""The types of properties with a field of their own; others are written as JSON."""
INPUT: Final = "in:"
"""Beginning of the names of fields of the input."""


class InputField(NamedTuple):
    """A field of the start form.

    Attributes:
        name: Name of the property.
        type: One of `SIMPLE`, or `json`.
        title: What the schema calls it.
        description: What the schema says about it.
        required: Whether it must be given.
        options: The allowed values as JSON, empty for any.
        value: Its first content.
    """

    name: str
    type: str
    title: str
    description: str
    required: bool
    options: list[str]
    value: str


def _metadata(document: Document | None) -> Mapping[str, Json]:
    value = None if document is None else document.composed_value
    found = value.get("Metadata") if type(value) is dict else None
    return found if type(found) is dict else {}


def input_fields(metadata: Mapping[str, Json]) -> list[InputField]:
    """Return the fields of the input of a document: by its JSON Schema, else by its example."""
    schema, example = input_schema(metadata), metadata.get(EXAMPLE)
    example = example if type(example) is dict else {}
    properties = schema.get("properties")
    if type(properties) is not dict:
        fields = [*_fields_of_example(example)]
    else:
        needed = schema.get("required")
        required = needed if type(needed) is list else []
        fields = [
            _field_of_schema(name, each if type(each) is dict else {}, name in required, example)
            for name, each in properties.items()
        ]
    return fields if len(fields) <= MOST_FIELDS else []


def _fields_of_example(example: Mapping[str, Json]) -> Iterator[InputField]:
    for name, value in example.items():
        kind = {str: "string", bool: "boolean", int: "integer", float: "number"}.get(type(value))
        yield InputField(name, kind or "json", name, "", False, [], _shown(value, kind or "json"))


def _field_of_schema(
    name: str, schema: Mapping[str, Json], required: bool, example: Mapping[str, Json]
) -> InputField:
    kind = schema.get("type")
    kind = kind if kind in SIMPLE else "json"
    choices = schema.get("enum")
    first = example.get(name, schema.get("default"))
    title, description = schema.get("title"), schema.get("description")
    return InputField(
        name,
        str(kind),
        title if type(title) is str else name,
        description if type(description) is str else "",
        required,
        [compact(each) for each in choices] if type(choices) is list else [],
        "" if first is None else compact(first) if choices else _shown(first, str(kind)),
    )


def _shown(value: Json, kind: str) -> str:
    if kind == "string" and type(value) is str:
        return value
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def input_in(form: FormData, metadata: Mapping[str, Json]) -> Json:
    """Return the input in a start form.

    Raises:
        AslError: A field is not JSON, or the input does not fit the schema of the document.
    """
    text = optional_field(form, "input")
    fields = input_fields(metadata)
    if text is not None or not fields:
        data = {} if text is None else json_field(text, "input")
    else:
        data = dict(_given(form, fields))
    found = faults(input_schema(metadata), data)
    if found:
        raise AslError(f"the input does not fit the schema of the document: {found}")
    return data


def _given(form: FormData, fields: list[InputField]) -> Iterator[tuple[str, Json]]:
    for each in fields:
        given = form.get(INPUT + each.name)
        if each.type == "boolean" and not each.options:
            yield each.name, given == "true"
        elif isinstance(given, str) and (
            given.strip() or (each.required and each.type == "string")
        ):
            if each.type == "string" and not each.options:
                yield each.name, given.replace("\r\n", "\n")
            else:
                yield each.name, json_field(given, each.name)


def show_documents(request: Request) -> Response:
    """List the published documents, with a form to publish one."""
    access = access_of(request, VIEWER)
    return _list(request, access)


def _list(
    request: Request,
    access: Access,
    *,
    status: int = 200,
    problem: str | None = None,
    lines: list[SourceLine] | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    return render(
        request,
        access,
        "documents.html",
        status,
        documents=[
            find_revision(access.project, each.name) for each in list_documents(access.project)
        ],
        problem=problem,
        lines=lines,
        given=given or {},
    )


def show_document(request: Request) -> Response:
    """Show a document: source with findings, graph, versions, executions, start form."""
    access = access_of(request, VIEWER)
    return _detail(request, access, request.path_params["reference"])


def _detail(
    request: Request,
    access: Access,
    reference: str,
    *,
    status: int = 200,
    problem: str | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    revision = find_revision(access.project, reference)
    document, report = _checked(revision)
    metadata = _metadata(document)
    recent, _ = access.store.search(ExecutionFilter(workflow=revision.name), limit=RECENT)
    example = metadata.get(EXAMPLE)
    return render(
        request,
        access,
        "document.html",
        status,
        revision=revision,
        reference=reference,
        versions=versions_of(access.project, find_document(access.project, revision.arn)),
        report=report,
        lines=numbered_lines(document.source, report) if document is not None else [],
        drawing=_drawing(document),
        fields=input_fields(metadata),
        example="" if example is None else _shown(example, "json"),
        recent=recent,
        now=access.store.clock.now(),
        problem=problem,
        given=given or {},
    )


def _checked(revision: Revision) -> tuple[Document | None, Report]:
    """Return the document of a revision with its findings; None if it cannot be read."""
    try:
        document = revision.document()
    except InvalidDocument as error:
        return None, error.report
    text = document.source.text
    if text is not None and "\n" not in text.strip():
        document = read_text(_shown(document.value, "json"), document.source.name)
    return document, check(document, profile=revision.profile, express=revision.kind == "EXPRESS")


def _drawing(document: Document | None) -> str | None:
    """Return the graph of a document, whose states lead to their lines."""
    if document is None:
        return None
    graph = graph_of(document.composed_value, part_descriptions(document))
    source = document

    def link(pointer: str) -> str:
        home, place = source.origin(pointer)
        return f"#line-{home.locate(place, at_key=True).line or 1}"

    return drawing_of(graph, link, {})


async def publish(request: Request) -> Response:
    """Publish a document; one with errors is shown with them."""
    async with posted_form(request, OPERATOR) as (access, form):
        given = {name: each for name, each in form.items() if isinstance(each, str)}
        document = None
        try:
            text, file = await upload_or_field(form, "file", "text")
            given["text"] = text
            name = optional_field(form, "name")
            document = await run_in_threadpool(read_text, text, file)
            revision = await publish_document(
                access.project,
                document,
                name=name,
                description=optional_field(form, "description"),
            )
        except AslError as error:
            lines = _lines_of(error, document)
            problem, status = str(error), status_of(error)
            return await run_in_threadpool(
                lambda: _list(
                    request, access, status=status, problem=problem, lines=lines, given=given
                )
            )
        details: dict[str, Json] = {"version": revision.version, "hash": revision.hash}
        record_action(access, "document.publish", revision.name, details)
        return go_to(request, f"documents/{quoted(revision.name)}")


def _lines_of(error: AslError, document: Document | None) -> list[SourceLine] | None:
    """Return the lines of a document with the findings of an error."""
    if not isinstance(error, InvalidDocument):
        return None
    shown = error.report.document or document
    if shown is None or shown.source.text is None:
        return None
    return numbered_lines(shown.source, error.report)


async def start(request: Request) -> Response:
    """Start an execution of a document; a wrong input shows the form again."""
    async with posted_form(request, OPERATOR) as (access, form):
        reference = request.path_params["reference"]
        try:
            metadata = await run_in_threadpool(
                lambda: _metadata(_checked(find_revision(access.project, reference))[0])
            )
            data = input_in(form, metadata)
            stored = await start_execution(
                access,
                document=reference,
                text=None,
                data=data,
                name=optional_field(form, "execution"),
            )
        except AslError as error:
            given = {name: each for name, each in form.items() if isinstance(each, str)}
            problem, status = str(error), status_of(error)
            return await run_in_threadpool(
                lambda: _detail(
                    request, access, reference, status=status, problem=problem, given=given
                )
            )
        return go_to(request, f"executions/{quoted(execution_key(stored))}?done=started")


async def delete(request: Request) -> Response:
    """Delete a document with its versions."""
    async with posted_form(request, OPERATOR) as (access, form):
        await delete_document(access, request.path_params["reference"], reason_in(form))
        return go_to(request, "documents")


ROUTES: Final = (
    Route("/documents", show_documents),
    Route("/documents", publish, methods=["POST"]),
    Route("/documents/{reference}", show_document),
    Route("/documents/{reference}/start", start, methods=["POST"]),
    Route("/documents/{reference}/delete", delete, methods=["POST"]),
)
"""The routes of documents."""
