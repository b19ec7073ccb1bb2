"""Settings of `asl serve` and `asl worker`: the tables `serve` and `worker` of a project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asl.core.errors import AslError
from asl.core.values import Json

__all__ = ["SECTIONS", "read_section"]


class _Target(NamedTuple):
    """The parameter of the command that a setting sets.

    Attributes:
        parameter: Its name; empty for that of the setting.
        is_path: Whether values are paths, relative to the file of the settings.
    """

    parameter: str = ""
    is_path: bool = False


Text: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$")]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
Table: TypeAlias = dict[Text, Text]


class _Section(BaseModel):
    """What both commands have."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    concurrency: int | None = Field(default=None, ge=1)
    grace: float | None = Field(default=None, ge=0, le=86_400)
    log_format: Literal["json", "text"] | None = None
    telemetry: Literal["console", "otlp"] | None = None
    agent: Annotated[Table, _Target("agent_pairs")] = {}
    workflow: Annotated[Table, _Target("workflow_pairs", is_path=True)] = {}
    notify: Annotated[list[Text], _Target("channels")] = []
    memory: Annotated[list[Text], _Target("memory_places")] = []
    pool: Annotated[Table, _Target("pool_pairs")] = {}
    sink: Annotated[Table, _Target("sink_pairs")] = {}
    policy: Annotated[list[Text], _Target("policy_files", is_path=True)] = []
    functions: Annotated[list[Text], _Target("templates", is_path=True)] = []
    runtime: Annotated[Table, _Target("runtime_pairs")] = {}
    aws: bool | None = None
    aws_endpoint: Annotated[list[Text], _Target("aws_endpoints")] = []


class ServeSection(_Section):
    """The table `serve`."""

    documents: Annotated[list[Text], _Target(is_path=True)] = []
    keep: Text | None = None
    keep_latest: int | None = Field(default=None, ge=0)
    host: Text | None = None
    port: Port | None = None
    account: Text | None = None
    region: Text | None = None
    require_auth: Annotated[Table, _Target("keys")] = {}
    schedules: Annotated[bool | None, _Target("with_schedules")] = None
    watch: bool | None = None
    project: Annotated[Table, _Target("project_pairs", is_path=True)] = {}
    users: Annotated[Text | None, _Target("users_file", is_path=True)] = None
    public_url: Text | None = None
    secret_file: Annotated[Text | None, _Target(is_path=True)] = None
    oidc: Annotated[Text | None, _Target("issuer")] = None
    oidc_client_id: Annotated[Text | None, _Target("client_id")] = None
    oidc_secret_file: Annotated[Text | None, _Target("client_secret_file", is_path=True)] = None
    oidc_user_claim: Annotated[Text | None, _Target("user_claim")] = None
    oidc_roles_claim: Annotated[Text | None, _Target("roles_claim")] = None
    proxy: Annotated[list[Text], _Target("proxies")] = []
    proxy_user_header: Annotated[Text | None, _Target("proxy_header")] = None
    proxy_roles_header: Text | None = None


class WorkerSection(_Section):
    """The table `worker`."""

    build: Text | None = None
    quiet: bool | None = None
    metrics_port: Port | None = None
    metrics_host: Text | None = None


SECTIONS: Final[Mapping[str, type[_Section]]] = {"serve": ServeSection, "worker": WorkerSection}
"""The tables by the name of their command."""


def read_section(
    file: str, command: str, value: Json, place: Callable[[str], str]
) -> dict[str, Any]:
    """Return the defaults of a command's options by parameter name.

    Args:
        file: The file of the settings, for messages.
        command: `serve` or `worker`.
        value: The table of this name.
        place: Returns a path of the file relative to the current folder.

    Raises:
        AslError: A setting is unknown or has a wrong value.
    """
    try:
        section = SECTIONS[command].model_validate(value)
    except ValidationError as refusal:
        first, *more = refusal.errors()
        where = ".".join((command, *map(str, first["loc"])))
        count = f" (and {len(more)} more)" if more else ""
        raise AslError(f"{file}: {where}: {first['msg']}{count}") from None
    options: dict[str, Any] = {}
    for name, field in SECTIONS[command].model_fields.items():
        given = getattr(section, name)
        if name in section.model_fields_set and given is not None:
            targets = [each for each in field.metadata if isinstance(each, _Target)]
            target = targets[0] if targets else _Target()
            options[target.parameter or name] = _option(given, place if target.is_path else str)
    return options


def _option(value: Any, place: Callable[[str], str]) -> Any:
    """Return a value as the command line gives it."""
    if isinstance(value, dict):
        return [f"{name}={place(each)}" for name, each in value.items()]
    if isinstance(value, list):
        return [place(each) for each in value]
    return place(value) if isinstance(value, str) else value
