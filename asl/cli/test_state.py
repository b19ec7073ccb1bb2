"""`asl test-state`: run a single state, like TestState of AWS."""

import click

import asl
from asl.cli import console
from asl.cli.arguments import AGENTS, Origin, origin_options, read_document, read_input
from asl.cli.binding_options import AGENT, bind_agents
from asl.cli.console import Exit
from asl.core.profile import PROFILES
from asl.core.values import Json

__all__ = ["test_state_command"]


@click.command("test-state")
@click.argument("document", metavar="DOC")
@click.option("-s", "--state", metavar="NAME", help="State to run, if DOC is a document.")
@origin_options
@click.option(
    "-i", "--input", "input_", metavar="JSON", help="Input as JSON, @FILE, or - for standard input."
)
@click.option("--mock-result", metavar="JSON", help="Mocked result of the state.")
@click.option("--mock-error", metavar="JSON", help='Mocked error: {"error": ..., "cause": ...}.')
@click.option(
    "--field-validation",
    type=click.Choice(["STRICT", "PRESENT", "NONE"]),
    help="Validation of the mocked result.  [default: STRICT]",
)
@click.option("--context", metavar="JSON", help="Context object.")
@click.option("--variables", metavar="JSON", help="Variables before the state.")
@click.option(
    "--level",
    type=click.Choice(["INFO", "DEBUG", "TRACE"]),
    default="INFO",
    show_default=True,
    help="DEBUG and TRACE print the data after each processing step.",
)
@click.option("--retries", metavar="N", type=click.IntRange(0), help="Number of retries so far.")
@click.option(
    "--configuration", metavar="JSON", help="Further fields of TestStateConfiguration of AWS."
)
@AGENTS
@AGENT
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="aws",
    show_default=True,
    help="The rules to apply: those of asl, of AWS, or lenient ones.",
)
def test_state_command(
    document: str,
    state: str | None,
    input_: str | None,
    mock_result: str | None,
    mock_error: str | None,
    field_validation: str | None,
    context: str | None,
    variables: str | None,
    level: str,
    retries: int | None,
    configuration: str | None,
    agent_files: tuple[str, ...],
    agent_pairs: tuple[str, ...],
    profile: str,
    origin: Origin,
) -> Exit:
    """Run a single state and print the response of TestState of AWS.

    DOC is a JSON or YAML file with a state or a document, or - for standard input. Exits with 1 if
    the state fails.

    \b
        asl test-state order.asl.json --state Charge --mock-result '{"paid": true}' --level DEBUG
    """
    mocks = {
        "result": (mock_result, "--mock-result"),
        "errorOutput": (mock_error, "--mock-error"),
    }
    mock = {
        key: read_input(text, option) for key, (text, option) in mocks.items() if text is not None
    }
    if mock and field_validation is not None:
        mock["fieldValidationMode"] = field_validation
    given = _read_object("--configuration", configuration) or {}
    if retries is not None:
        given["retrierRetryCount"] = retries
    bound = bind_agents(agent_files, agent_pairs)
    result = asl.test_state(
        read_document(document, origin),
        {} if input_ is None else read_input(input_),
        state=state,
        mock=mock or None,
        context=_read_object("--context", context),
        variables=_read_object("--variables", variables),
        level=level,
        configuration=given,
        agents=bound.agents,
        resources=bound.resources,
        profile=profile,
    )
    console.write_result(console.as_text(result.to_json()))
    return Exit.FAILED if result.status == "FAILED" else Exit.OK


def _read_object(option: str, text: str | None) -> dict[str, Json] | None:
    if text is None:
        return None
    value = read_input(text, option)
    if type(value) is not dict:
        raise click.BadParameter("the value must be an object", param_hint=option)
    return value
