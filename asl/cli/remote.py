"""`asl start`, and the lists of `asl ls` and `asl show` from a running service."""

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import click

from asl.cli import console
from asl.cli.console import Exit, exit_of_status
from asl.core.errors import AslError
from asl.core.printable import printable
from asl.core.values import Json
from asl.expr.times import format_timestamp

__all__ = ["ENDPOINT", "list_remote", "show_remote", "start_command"]

DEFAULT: Final = "http://127.0.0.1:8083"
VARIABLE: Final = "AWS_ENDPOINT_URL_SFN"
TIMEOUT: Final = 70.0
"""Seconds to wait for a response."""
POLL: Final = 0.1
"""Seconds between two looks at a running execution."""

ENDPOINT = click.option(
    "--endpoint",
    metavar="URL",
    help="Ask a running service (asl serve) instead of a store.",
)


def send(endpoint: str, operation: str, **request: Json) -> dict[str, Any]:
    """Return the response of a service to a request.

    Raises:
        AslError: The service refuses it, or does not answer.
    """
    import urllib.error
    import urllib.request

    if not endpoint.startswith(("http://", "https://")):
        raise AslError(f"--endpoint must be a URL such as {DEFAULT}, got {endpoint!r}")
    body = json.dumps({name: value for name, value in request.items() if value is not None})
    headers = {
        "X-Amz-Target": f"AWSStepFunctions.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
    }
    sent = urllib.request.Request(endpoint, body.encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(sent, timeout=TIMEOUT) as response:
            answer: dict[str, Any] = json.loads(response.read())
            return answer
    except urllib.error.HTTPError as refusal:
        raise AslError(_refusal(refusal.read(), endpoint)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise AslError(f"no service answers at {endpoint}: {reason}") from None


def _refusal(body: bytes, endpoint: str) -> str:
    try:
        found = json.loads(body)
        return f"{found['__type']}: {found['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{endpoint} is not a Step Functions service: {body[:200]!r}"


def _pages(endpoint: str, operation: str, member: str, **request: Json) -> Iterator[Any]:
    """Yield the elements of all pages of a list."""
    token = None
    while True:
        page = send(endpoint, operation, nextToken=token, **request)
        yield from page[member]
        token = page.get("nextToken")
        if token is None:
            return


def list_remote(endpoint: str, status: str | None, limit: int, as_json: bool) -> Exit:
    """Print the latest executions of all state machines of a service."""
    found: list[dict[str, Any]] = []
    wanted = "RUNNING" if status == "PAUSED" else status
    for machine in _pages(endpoint, "ListStateMachines", "stateMachines"):
        if machine["type"] == "STANDARD":
            arn = machine["stateMachineArn"]
            found += send(
                endpoint,
                "ListExecutions",
                stateMachineArn=arn,
                statusFilter=wanted,
                maxResults=min(limit, 1000),
            )["executions"]
    found.sort(key=lambda each: -float(each["startDate"]))
    if not found:
        console.print_message("asl: there are no executions")
    for each in found[:limit]:
        started = format_timestamp(each["startDate"])
        if as_json:
            console.write_result(console.as_text({**each, "startDate": started}))
        else:
            name = printable(each["executionArn"])
            console.write_result(f"{name}  {each['status']:<9}  {started}")
    return Exit.OK


def show_remote(endpoint: str, name: str) -> Exit:
    """Print an execution of a service and its history."""
    found = send(endpoint, "DescribeExecution", executionArn=name)
    console.write_result(f"{printable(found['executionArn'])}  {found['status']}")
    console.write_result(f"started  {format_timestamp(found['startDate'])}")
    if "stopDate" in found:
        console.write_result(f"ended    {format_timestamp(found['stopDate'])}")
    for member in ("input", "output", "error", "cause"):
        if member in found:
            console.write_result(f"{member:<8} {printable(found[member])}")
    for event in _pages(endpoint, "GetExecutionHistory", "events", executionArn=name):
        details = next((value for value in event.values() if isinstance(value, dict)), {})
        label = details.get("name") or details.get("resource") or ""
        time_ = format_timestamp(event["timestamp"])
        line = f"{event['id']:>5}  {time_}  {event['type']}  {printable(str(label))}"
        console.write_result(line.rstrip())
    return Exit.OK


@click.command("start")
@click.argument("machine", metavar="MACHINE")
@click.option("--input", "text", metavar="JSON", default="{}", help="Input of the execution.")
@click.option("--name", metavar="NAME", help="Name of the execution; random by default.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the output.")
@click.option(
    "--endpoint",
    metavar="URL",
    envvar=VARIABLE,
    default=DEFAULT,
    show_default=True,
    help="URL of the service; $AWS_ENDPOINT_URL_SFN if it is set.",
)
def start_command(machine: str, text: str, name: str | None, wait: bool, endpoint: str) -> Exit:
    """Start an execution of a running service (asl serve).

    MACHINE is the name or the ARN of a registered state machine.

    \b
        asl start orders --input '{"id": 7}' --wait

    \f
    Raises:
        AslError: The service refuses the request.
    """
    arn = machine if machine.startswith("arn:") else _machine(endpoint, machine)
    started = send(endpoint, "StartExecution", stateMachineArn=arn, input=text, name=name)
    if not wait:
        console.write_result(printable(started["executionArn"]))
        return Exit.OK
    console.print_message(f"asl: {printable(started['executionArn'])}")
    while True:
        found = send(endpoint, "DescribeExecution", executionArn=started["executionArn"])
        if found["status"] != "RUNNING":
            break
        time.sleep(POLL)
    if "output" in found:
        console.write_result(found["output"])
    else:
        why = console.error_text(found.get("error"), found.get("cause"))
        console.print_message(f"asl: {found['status']} {why}".rstrip(), style="red")
    return exit_of_status(found["status"])


def _machine(endpoint: str, name: str) -> str:
    """Return the ARN of a state machine by its name.

    Raises:
        AslError: There is none.
    """
    names: list[str] = []
    for each in _pages(endpoint, "ListStateMachines", "stateMachines"):
        if each["name"] == name:
            return str(each["stateMachineArn"])
        names.append(each["name"])
    known = f"; there are {', '.join(names[:10])}" if names else ""
    raise AslError(f"the service has no state machine {name!r}{known}")
