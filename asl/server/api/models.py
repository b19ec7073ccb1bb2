"""Bodies and answers of the REST interface, from which its OpenAPI document comes.

Times are in ISO 8601, durations in seconds, costs in the currency of the document.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from asl.executions.schedules import CatchUp, Overlap
from asl.server.webhooks.signatures import Scheme

__all__ = [
    "AnswerBatch",
    "AnswerRequest",
    "AnswerResult",
    "AuditEntryModel",
    "AuditPage",
    "BudgetModel",
    "CheckRequest",
    "CheckResult",
    "ConversionResult",
    "ConvertRequest",
    "CostOverview",
    "CostReport",
    "CostRowModel",
    "DocumentDetail",
    "DocumentPage",
    "DocumentSummary",
    "DocumentText",
    "Drawing",
    "EventModel",
    "EventPage",
    "ExecutionDetail",
    "ExecutionPage",
    "ExecutionSummary",
    "Feedback",
    "FeedbackAnswer",
    "ForkRequest",
    "Health",
    "NewExecution",
    "NextTimes",
    "PlanResult",
    "Problem",
    "PublishRequest",
    "Reason",
    "RedriveRequest",
    "RequestModel",
    "RequestPage",
    "ResumeRequest",
    "ScheduleModel",
    "SchedulePage",
    "ScheduleRequest",
    "TokenAnswer",
    "TokenPage",
    "WebhookModel",
    "WebhookPage",
    "WebhookRequest",
    "WhoAmI",
    "reason_of",
]

MAX_TEXT = 4 * 1024 * 1024
"""Characters of the largest document."""
MAX_WORDS = 10_000
"""Characters of the longest comment or reason."""


class Model(BaseModel):
    """A body or an answer: members in camel case, no unknown members."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True, extra="forbid"
    )


class Problem(Model):
    """Why a request was refused."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    status: int = Field(description="The HTTP status.")
    code: str = Field(description="A stable name of the kind of error.")
    detail: str = Field(description="What is wrong, as a sentence.")


# Documents


class DocumentText(Model):
    """A document, as a text or by reference; exactly one of both."""

    text: str | None = Field(default=None, max_length=MAX_TEXT, description="JSON or YAML.")
    document: str | None = Field(
        None, description="`NAME`, `NAME:VERSION` or a hash of a published document."
    )
    file: str | None = Field(
        default=None, max_length=400, description="Name of the file, for messages."
    )
    dialect: str | None = Field(default=None, description="By default by the shape of the text.")


class PublishRequest(Model):
    """A document to publish."""

    text: str = Field(max_length=MAX_TEXT, description="JSON or YAML, of any dialect.")
    name: str | None = Field(default=None, description="By default the name of the file.")
    file: str | None = Field(
        default=None, max_length=400, description="Name of the file, for messages."
    )
    dialect: str | None = Field(default=None, description="By default by the shape of the text.")
    type: Literal["STANDARD", "EXPRESS"] = "STANDARD"
    profile: Literal["aws", "default"] | None = Field(
        None, description="By default `aws` if the document passes its rules, else `default`."
    )
    description: str | None = Field(default=None, max_length=256, description="About this version.")


class DocumentSummary(Model):
    """A revision of a published document."""

    name: str
    arn: str
    hash: str = Field(description="SHA-256 of the compiled document.")
    version: int | None = Field(description="Null for a current revision without a version.")
    type: Literal["STANDARD", "EXPRESS"]
    profile: str
    dialect: str
    published: str
    description: str | None


class DocumentDetail(DocumentSummary):
    """A revision with its texts and all versions."""

    text: str = Field(description="The text that was published.")
    file: str | None
    definition: str = Field(description="JSON of the definition in states, which runs.")
    versions: list[DocumentSummary]


class DocumentPage(Model):
    """The published documents, by name."""

    documents: list[DocumentSummary]


class CheckRequest(DocumentText):
    """A document to check."""

    profile: Literal["aws", "default", "lenient"] = "default"
    strict: bool = Field(default=False, description="Whether warnings count as errors.")
    type: Literal["STANDARD", "EXPRESS"] = "STANDARD"


class CheckResult(Model):
    """All findings, in the order of the document."""

    ok: bool
    errors: int
    warnings: int
    infos: int
    diagnostics: list[dict[str, JsonValue]]


class ConvertRequest(DocumentText):
    """A document to convert."""

    to: str = Field(description="Name of the dialect, such as `amazon`.")


class ConversionResult(Model):
    """A converted document and what was lost."""

    text: str
    ok: bool = Field(description="Whether no behaviour is lost.")
    losses: list[dict[str, JsonValue]]
    files: dict[str, str] = Field(description="Further files that the text imports, by path.")


class Drawing(Model):
    """A drawing of a document."""

    format: str
    text: str


class PlanResult(Model):
    """What a document may do and cost."""

    plan: dict[str, JsonValue]


# Executions


class NewExecution(Model):
    """An execution to start: of a published document, or of a text."""

    document: str | None = Field(
        None, description="`NAME`, `NAME:VERSION` or a hash of a published document."
    )
    text: str | None = Field(
        default=None, max_length=MAX_TEXT, description="A document, JSON or YAML."
    )
    input: JsonValue = Field(default_factory=dict, description="The input.")
    name: str | None = Field(default=None, max_length=80, description="Unique; random by default.")


class ExecutionSummary(Model):
    """An execution in a list."""

    id: str = Field(description="For paths of this interface.")
    name: str
    workflow: str
    document: str = Field(description="Hash of the document.")
    version: str | None
    status: str
    started: str
    ended: str | None
    requestor: str | None
    error: str | None
    cause: str | None


class ExecutionPage(Model):
    """A page of executions, the newest first."""

    executions: list[ExecutionSummary]
    next: str | None = Field(description="The parameter `before` of the next page.")


class ExecutionDetail(ExecutionSummary):
    """An execution with its data."""

    arn: str
    input: JsonValue
    output: JsonValue = None
    redrives: int
    usage: dict[str, JsonValue]
    needs: list[str] = Field(description="Bindings that no runner has, a sentence on each.")
    pending: list[RequestModel]
    tokens: list[dict[str, JsonValue]]
    checkpoints: list[dict[str, JsonValue]]
    children: list[ExecutionSummary]


class Reason(Model):
    """Why an execution is stopped, repeated or deleted; for the audit log."""

    reason: str | None = Field(default=None, max_length=MAX_WORDS)


def reason_of(body: Reason | None) -> str | None:
    """Return the reason in an optional body."""
    return None if body is None else body.reason


class RedriveRequest(Reason, DocumentText):
    """Why an execution is repeated, and with which document; by default the same."""


class ForkRequest(Reason):
    """Where a copy of an execution starts."""

    at: str = Field(description="`STATE` for its latest visit, `STATE#2` for the second one.")
    input: JsonValue = Field(
        default=None, description="Input of the state; by default the original one."
    )
    name: str | None = Field(default=None, max_length=80, description="Random by default.")


class ResumeRequest(Reason):
    """Where an execution continues."""

    from_checkpoint: str = Field(description="Name or id of a checkpoint.")


class EventModel(Model):
    """An event of a history; a live chunk of an agent's answer has the id 0."""

    id: int
    timestamp: str
    type: str
    path: list[str | int]
    details: dict[str, Any]


class EventPage(Model):
    """A page of the history, the oldest first."""

    events: list[EventModel]
    next: int | None = Field(description="The parameter `after` of the next page.")


class CostReport(Model):
    """Costs and tokens: `cost`, `tokens`, and tables by state, category, model and tag."""

    report: dict[str, JsonValue]


class CostRowModel(Model):
    """Costs and tokens of one workflow or model."""

    name: str
    executions: int
    cost: float
    tokens: int


class BudgetModel(Model):
    """A budget that executions share."""

    name: str
    spent: float
    reserved: float
    limit: float | None = Field(description="Null if this service does not know it.")


class CostOverview(Model):
    """Costs of the executions that started after a time, and the shared budgets."""

    total: CostRowModel
    workflows: list[CostRowModel]
    models: list[CostRowModel]
    budgets: list[BudgetModel]
    complete: bool = Field(description="Whether no execution of the time is left out.")


# Requests and answers


class RequestModel(Model):
    """A request that waits for people."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(description="For paths of this interface.")
    request_id: str
    execution: str
    execution_id: str
    type: str
    options: list[JsonValue]


class RequestPage(Model):
    """Open requests, the oldest first."""

    requests: list[RequestModel]
    next: str | None = Field(description="The parameter `after` of the next page.")


class AnswerRequest(Model):
    """A decision; who decides is the authenticated user."""

    approval: JsonValue = Field(default=None, description="The chosen option.")
    comment: str | None = Field(default=None, max_length=MAX_WORDS)
    edited: dict[str, JsonValue] | None = Field(
        None, description="New values of the editable fields."
    )
    digest: str | None = Field(
        default=None, description="The `digest` of the request that was read."
    )
    decisions: JsonValue = Field(default=None, description="Decisions on the items of a batch.")
    approved: list[int] | None = Field(default=None, description="Indices of the approved items.")
    rejected: list[int] | None = Field(default=None, description="Indices of the rejected items.")
    more: dict[str, JsonValue] = Field(
        default_factory=dict, description="Further fields of the record."
    )


class AnswerBatch(Model):
    """The same decision on several requests."""

    ids: list[str] = Field(min_length=1, max_length=1000)
    answer: AnswerRequest


class AnswerResult(Model):
    """What an answer led to."""

    id: str
    record: JsonValue = Field(description="The decision; null while more approvals are needed.")
    problem: str | None = Field(default=None, description="Why this answer was refused.")


class TokenPage(Model):
    """Tasks that wait for the answer to their token, the oldest first."""

    tokens: list[dict[str, JsonValue]]
    next: str | None


class TokenAnswer(Model):
    """The answer to a task token: an output, an error, or a heartbeat."""

    token: str = Field(max_length=2048)
    output: JsonValue = None
    error: str | None = Field(default=None, max_length=256)
    cause: str | None = Field(default=None, max_length=32768)
    heartbeat: bool = False


class Feedback(Model):
    """The questions of an execution to its user."""

    requests: list[dict[str, JsonValue]]


class FeedbackAnswer(Model):
    """An answer to a feedback request."""

    feedback_id: str
    answer: JsonValue


# Schedules


class ScheduleRequest(Model):
    """A schedule to create or replace."""

    document: str = Field(description="`NAME` or `NAME:VERSION` of a published document.")
    expression: str = Field(
        max_length=256,
        description="`rate(5 minutes)`, `cron(0 12 * * ? *)`, `at(2027-01-31T12:00:00)` or five "
        "fields of cron.",
    )
    timezone: str = Field(default="UTC", max_length=80, description="As Europe/Berlin.")
    input: JsonValue = Field(
        default=None,
        description="By default `schedule` and `scheduledTime`; may contain "
        "`<aws.scheduler.scheduled-time>`.",
    )
    catch_up: CatchUp = Field(
        default="last", description="Which of the missed times are made up for."
    )
    catch_up_limit: int = Field(default=10, ge=1, le=1000, description="At most so many of them.")
    overlap: Overlap = Field(
        default="skip", description="What happens while an earlier execution runs."
    )
    start: AwareDatetime | None = Field(default=None, description="The earliest time.")
    end: AwareDatetime | None = Field(default=None, description="The latest time.")
    paused: bool = False


class ScheduleModel(Model):
    """A schedule and what has become of it."""

    name: str
    document: str
    expression: str
    timezone: str
    input: JsonValue
    catch_up: CatchUp
    catch_up_limit: int
    overlap: Overlap
    start: str | None
    end: str | None
    paused: bool
    user: str | None = Field(description="Who changed it last.")
    created: str
    next: str | None = Field(description="The next time; null if it is paused or over.")
    latest: str | None = Field(description="The execution that was started last.")
    skipped: int = Field(description="Times at which nothing was started.")
    error: str | None = Field(description="Why the last start failed.")


class SchedulePage(Model):
    """All schedules."""

    schedules: list[ScheduleModel]


class NextTimes(Model):
    """The next times of a schedule."""

    times: list[str]


# Webhooks


class WebhookRequest(Model):
    """A webhook to register or replace."""

    document: str = Field(description="`NAME` or `NAME:VERSION` of a published document.")
    scheme: Scheme = Field(description="How requests are signed.")
    secrets: tuple[str, ...] = Field(
        min_length=1,
        max_length=10,
        description="`${env:NAME}` or `${file:/PATH}`; several while one replaces another.",
    )
    header: str | None = Field(default=None, description="Header of the scheme `header`.")
    delivery_header: str | None = Field(
        default=None, description="Header with the id of a delivery; by default by the scheme."
    )
    headers: tuple[str, ...] = Field(
        default=(), description="Headers that the input has, in `headers`; the body is in `body`."
    )
    content_types: tuple[str, ...] = Field(default=(), description="By default JSON.")
    max_bytes: int = Field(default=262_144, ge=1, le=1_048_576, description="Largest body.")


class WebhookModel(Model):
    """A registered webhook."""

    name: str
    path: str = Field(description="Where it is called.")
    document: str
    scheme: Scheme
    secrets: tuple[str, ...] = Field(description="References to its secrets.")
    header: str
    delivery_header: str
    headers: tuple[str, ...]
    content_types: tuple[str, ...]
    max_bytes: int
    created: str
    user: str | None = Field(description="Who registered it.")


class WebhookPage(Model):
    """All webhooks."""

    webhooks: list[WebhookModel]


# Service


class WhoAmI(Model):
    """The authenticated user."""

    user: str
    roles: list[str]
    method: str
    project: str


class Health(Model):
    """Whether the service works."""

    status: Literal["ok", "degraded"]
    version: str
    store: str
    workers: int = Field(description="Number of live runners of the store.")
    stuck: int = Field(description="Number of executions that no runner can continue.")


class AuditEntryModel(Model):
    """An action of a user."""

    id: int
    time: str
    user: str
    method: str = Field(description="How the user was authenticated.")
    action: str
    target: str
    details: dict[str, JsonValue]
    hash: str = Field(description="SHA-256 of the entry and the hash of the one before it.")


class AuditPage(Model):
    """Actions of users, the newest first."""

    entries: list[AuditEntryModel]
    next: int | None = Field(description="The parameter `before` of the next page.")


ExecutionDetail.model_rebuild()
