"""Secrets of agents files: looked up when they are loaded, seen by nobody else."""

import html
import json
import os
import sys
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.agents.file import InvalidAgents, load_bindings
from asl.agents.http import HttpAgent
from asl.agents.process import ProcessAgent
from asl.agents.secrets import HIDDEN, MAX_SECRET, SecretFilter, secret_filter
from asl.engine.agent import Agent, Call

from .servers import serving
from .workflows import caught, task

SECRET = 'tok-"ö\\7'
TELLTALE = """
import json, os, sys
for line in sys.stdin:
    parameters = json.loads(line)["parameters"]
    secret = os.environ["KEY"]
    mode = parameters["mode"]
    if mode == "returns":
        print(json.dumps({"return": {"a": ["Bearer " + secret], secret: 1}}), flush=True)
    elif mode == "raises":
        print(json.dumps({"error": "Denied." + secret, "cause": "bad key " + secret}), flush=True)
    elif mode == "garbage":
        print("no JSON " + "x" * parameters["before"] + secret, flush=True)
    elif mode == "nonsense":
        print(json.dumps({"x": secret}), flush=True)
    elif mode == "reports":
        print(json.dumps({"progress": 10, "message": "with " + secret}), flush=True)
        print(json.dumps({"return": 1}), flush=True)
    elif mode == "dies":
        sys.stderr.write("x" * parameters["before"] + secret + "y" * parameters["after"])
        if parameters["before"] == parameters["after"] == 0:
            sys.stderr.write(secret[1:] + secret * 20_000)
        sys.exit(1)
"""


def telltale(folder: Path, reference: str) -> Any:
    """Return the bindings of a program that tells everybody what is in its variable KEY."""
    (folder / "telltale.py").write_text(TELLTALE)
    command = [sys.executable, "telltale.py"]
    spec = {"A": {"command": command, "environment": {"KEY": reference}}}
    (folder / "agents.json").write_text(json.dumps(spec))
    return load_bindings(folder / "agents.json")


@pytest.fixture(params=["env", "file"])
def bound(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program with a secret, from either source."""
    if request.param == "env":
        monkeypatch.setenv("THE_KEY", SECRET)
        return telltale(tmp_path, "${env:THE_KEY}")
    (tmp_path / "key.txt").write_text(f"{SECRET}\n", encoding="utf-8")
    return telltale(tmp_path, "${file:key.txt}")


MODES: list[dict[str, Any]] = [
    {"mode": "returns"},
    {"mode": "raises"},
    {"mode": "nonsense"},
    {"mode": "reports"},
    *({"mode": "garbage", "before": before} for before in (0, 185, 190, 195)),
    *({"mode": "dies", "before": 3000, "after": after} for after in (0, 1990, 1996, 2000, 16_380)),
]


@pytest.mark.parametrize("parameters", MODES, ids=str)
def test_what_an_agent_tells_has_no_secret_in_it(parameters: dict[str, Any], bound: Any) -> None:
    """Results, error names, causes, events: nothing holds the secret, or a part of it at a cut."""
    events: list[asl.Event] = []
    result = asl.run(caught("States.ALL"), parameters, agents=bound.agents, listener=events.append)
    told = repr([result.output, result.error, result.cause, *(each.to_json() for each in events)])
    for text in (SECRET, "tok-", json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1]):
        assert text not in told
    if parameters["mode"] == "returns":
        assert result.output == {"a": [f"Bearer {HIDDEN}"], HIDDEN: 1}
    if parameters["mode"] == "raises":
        assert result.output == {"Error": f"Denied.{HIDDEN}", "Cause": f"bad key {HIDDEN}"}


def test_reprs_show_no_secret(bound: Any) -> None:
    """Neither the bindings nor their agents show what they know."""
    assert "tok-" not in repr(bound) + repr(bound.agents["A"]) + str(bound.agents["A"])


def test_a_program_gets_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text around a placeholder stays, and several may stand in one."""
    monkeypatch.setenv("ONE", "eins")
    (tmp_path / "two").write_text("zwei")
    code = "import json, os; input(); print(json.dumps({'return': len(os.environ['KEY'])}))"
    spec = {
        "A": {
            "command": [sys.executable, "-c", code],
            "environment": {"KEY": "<${env:ONE}|${file:two}|${OTHER}>"},
        }
    }
    (tmp_path / "agents.json").write_text(json.dumps(spec))
    agents = load_bindings(tmp_path / "agents.json").agents
    assert asl.run(task(), agents=agents).output == len("<eins|zwei|${OTHER}>")


def faults(folder: Path, text: str) -> str:
    (folder / "agents.yaml").write_text(text)
    with pytest.raises(InvalidAgents) as refusal:
        load_bindings(folder / "agents.yaml")
    return str(refusal.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("${env:NOT_THERE}", "the environment has no variable 'NOT_THERE'"),
        ("${env:}", "${env:} names no variable"),
        ("${file:}", "${file:} names no file"),
        ("${env:EMPTY}", "the variable 'EMPTY' is empty"),
        ("${env:HUGE}", f"the variable 'HUGE' holds more than {MAX_SECRET} characters"),
        ("${file:nope.txt}", "the file 'nope.txt' cannot be read: no such file or directory"),
        ("${file:.}", "cannot be read: is a directory"),
        ("${file:blank}", "is empty"),
        ("${file:latin}", "the file 'latin' is not UTF-8"),
    ],
)
def test_a_secret_that_is_not_there_is_a_fault_at_its_place(
    reference: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file cannot be used; the message names the source and never what it holds."""
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("HUGE", "h" * (MAX_SECRET + 1))
    (tmp_path / "blank").write_text("\n")
    (tmp_path / "latin").write_bytes(b"\xff")
    text = f"A:\n  command: [x]\n  environment: {{K: '{reference}'}}"
    said = faults(tmp_path, text)
    assert said.startswith("agents.yaml:3:20: error AGENTS-06: ")
    assert found in said
    assert "hhh" not in said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A: {command: ['${env:K}']}", "a secret is not allowed here: '${env:K}'"),
        ("A: {command: ['${env:K}']}", "(secrets are allowed in 'environment')"),
        ("A: {return: {x: ['${file:k}']}}", "a secret is not allowed here: '${file:k}'"),
        ("A: {return: '${env:K}'}", "(this kind of agent takes no secret)"),
    ],
)
def test_a_secret_must_not_stand_where_it_is_shown(text: str, found: str, tmp_path: Path) -> None:
    """Command lines are seen by everybody on the machine, scripts by everybody with the history."""
    assert found in faults(tmp_path, text)


SECRETS = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=3)


@given(SECRETS, st.text(), st.text())
def test_no_form_of_a_secret_is_left(secrets: list[str], before: str, after: str) -> None:
    """A text around any quoted form of a secret comes out without it."""
    hide = secret_filter(secrets)
    for secret in secrets:
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(json.dumps(secret))[3:-3],
            repr(secret)[1:-1],
            repr(secret.encode())[2:-1],
            secret.encode().decode("latin-1"),
            html.escape(secret),
            quote_plus(secret),
        ):
            hidden = hide(before + form + after)
            assert form not in hidden or "*" in form


TOLD = "key-4711-of-mine"


class Tells(Agent):
    """Does with its secret what a test says."""

    def __init__(self, tell: Callable[[Call], Any]) -> None:
        self.tell = tell

    async def answer(self, payload: Any, call: Call | None) -> Any:
        assert call is not None
        told = self.tell(call)
        return await told if isawaitable(told) else told


def fails_with_usage(call: Call) -> Any:
    error = asl.StateError("Broken", "why")
    error.usage = {"_usage": TOLD, "model": TOLD}
    raise error


def reports(call: Call) -> Any:
    call.report_progress(TOLD)  # type: ignore[arg-type]
    return None


@pytest.mark.parametrize(
    "tell",
    [
        fails_with_usage,
        reports,
        lambda call: call.tools.call(TOLD, {}),
        lambda call: call.tools.call("tool", {TOLD: [TOLD]}),
        lambda call: call.tools.call("tool", TOLD),
        lambda call: call.tools.refuse(TOLD, TOLD, "Agent.ToolError", TOLD),
    ],
)
def test_events_of_an_agent_hide_secrets(tell: Callable[[Call], Any]) -> None:
    """Of usage, progress and requests for tools the history knows no secret either."""
    seen: list[Any] = []
    document: Any = task()
    document["States"]["T"] |= {
        "Progress": {"Enabled": True},
        "Tools": {"Audit": {"LogLevel": "full"}},
    }
    agent = SecretFilter(Tells(tell), {TOLD})
    result = asl.run(document, {}, agents={"A": agent}, tools={"tool": seen.append})
    said = repr([result.to_json(), [each.to_json() for each in result.events], seen])
    assert TOLD not in said
    assert HIDDEN in said


def test_a_number_that_is_a_secret_is_hidden() -> None:
    """Not only where it is written as a text."""
    assert secret_filter({"4711"})({"pin": 4711, "n": [47110, 4711.5]}) == {
        "pin": HIDDEN,
        "n": [47110, 4711.5],
    }


def test_a_program_tells_no_secret_of_its_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It inherits the environment of this process, though the file gives it nothing."""
    monkeypatch.setenv("THE_KEY", TOLD)
    code = "import json, os; input(); print(json.dumps({'return': os.environ['THE_KEY']}))"
    agents = {
        "A": {"command": [sys.executable, "-c", code]},
        "B": {"command": ["x"], "environment": {"KEY": "${env:THE_KEY}"}},
    }
    (tmp_path / "agents.json").write_text(json.dumps({"agents": agents}))
    assert asl.run(task(), agents=load_bindings(tmp_path / "agents.json").agents).output == HIDDEN


def test_a_loud_program_is_cut_without_half_a_secret(bound: Any) -> None:
    """However much of what it says is a secret, so that little is left of much."""
    parameters = {"mode": "dies", "before": 0, "after": 0}
    cause = asl.run(caught("States.ALL"), parameters, agents=bound.agents).output["Cause"]
    assert "tok-" not in cause


def mode_of(function: Any) -> str:
    return f"{__name__}:{function.__name__}"


def returns_it(parameters: Any) -> Any:
    return {"key": os.environ["THE_KEY"], os.environ["THE_KEY"]: (os.environ["THE_KEY"],)}


async def returns_it_later(parameters: Any) -> Any:
    return returns_it(parameters)


def raises_it(parameters: Any) -> Any:
    raise ValueError(os.environ["THE_KEY"])


def names_it(parameters: Any, call: Call) -> Any:
    call.report_progress(5, os.environ["THE_KEY"])
    raise asl.StateError(f"No.{os.environ['THE_KEY']}", os.environ["THE_KEY"])


def exits_with_it(parameters: Any) -> Any:
    raise SystemExit(os.environ["THE_KEY"])


def asks_with_it(parameters: Any, call: Call) -> Any:
    call.report_chunk(f"so {os.environ['THE_KEY'][:4]}")
    call.report_chunk(f"{os.environ['THE_KEY'][4:]}.")
    return call.tools.call("Tool", {"key": os.environ["THE_KEY"]})


@pytest.mark.parametrize(
    "function",
    [returns_it, returns_it_later, raises_it, names_it, exits_with_it, asks_with_it],
    ids=mode_of,
)
def test_a_function_of_the_file_tells_no_secret(
    function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in this process, and finds the secrets of its neighbours by itself."""
    monkeypatch.setenv("THE_KEY", TOLD)
    spec = {
        "agents": {
            "A": mode_of(function),
            "B": {"command": ["x"], "environment": {"KEY": "${env:THE_KEY}"}},
        },
        "tools": {"Tool": {"description": "Tells.", "agent": mode_of(returns_it)}},
    }
    (tmp_path / "agents.json").write_text(json.dumps(spec))
    document = caught(
        "States.ALL",
        Streaming={"Enabled": True},
        Progress={"Enabled": True},
        Tools={"Allowed": ["*"], "Audit": {"LogLevel": "full"}},
    )
    bound = load_bindings(tmp_path / "agents.json")
    result = asl.run(document, agents=bound.agents, tools=bound.tools)
    said = repr([result.to_json(), [each.to_json() for each in result.events]])
    assert TOLD not in said
    assert HIDDEN in said


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "Cookie", "x-auth-token"])
def test_secret_headers_are_masked(name: str) -> None:
    """A header whose name says that it holds a secret is one, as a whole and behind `Bearer`."""
    key = "sk-0123456789abcdef"
    with serving(lambda e: e.answer(500, e.headers[name.lower()][7:].encode())) as server:
        headers = {name: f"Bearer {key}", "X-Kind": "application/json"}
        result = asl.run(task(), agents={"A": HttpAgent(server.url, headers=headers)})
    assert key not in repr([result.to_json(), [each.to_json() for each in result.events]])
    assert str(result.cause).endswith(f": {HIDDEN}")


def test_what_is_no_secret_is_shown() -> None:
    """Neither a header that says nothing of the kind, nor a short text."""
    with serving(lambda e: e.answer(200, [e.headers["x-kind"], e.headers["x-key"]])) as server:
        headers = {"X-Kind": "application/json", "X-Key": "none"}
        result = asl.run(task(), agents={"A": HttpAgent(server.url, headers=headers)})
    assert result.output == ["application/json", "none"]


def test_secret_environment_variables_are_masked() -> None:
    """A program that is given one tells it to nobody."""
    code = "import json, os; input(); print(json.dumps({'return': dict(os.environ)}))"
    given = {"MY_API_KEY": "k-0123456789abcdef", "MY_PLACE": "a place that is long enough"}
    agent = ProcessAgent([sys.executable, "-c", code], environment=given)
    output = asl.run(task(), agents={"A": agent}).output
    assert output["MY_API_KEY"] == HIDDEN
    assert output["MY_PLACE"] == given["MY_PLACE"]


ENCODED: Final[list[Callable[[bytes], str]]] = [
    bytes.hex,
    lambda text: text.hex().upper(),
    lambda text: text.hex(":"),
    lambda text: text.hex(" "),
    lambda text: b64encode(text).decode(),
    lambda text: b64encode(b"user:" + text).decode(),
    lambda text: b64encode(b"ab" + text + b"cd").decode(),
    lambda text: b64encode(b"x" + text + b"y" * 100).decode(),
    lambda text: urlsafe_b64encode(text).decode(),
    lambda text: b32encode(text).decode(),
    lambda text: "".join(f"%{each:02x}" for each in text),
    lambda text: "".join(f"%{each:02X}" for each in text),
    lambda text: "".join(f"\\x{each:02x}" for each in text),
    lambda text: "".join(f"\\u{each:04x}" for each in text),
]


@pytest.mark.parametrize("encode", ENCODED)
@pytest.mark.parametrize("secret", ["s3cr3t-Key+9/?", "0123456789abcdef", "a" * 100])
def test_encoded_secrets_are_hidden(encode: Callable[[bytes], str], secret: str) -> None:
    """In the usual encodings, also as a part of what is encoded; at most a few bits are left."""
    told = encode(secret.encode())
    hidden = str(secret_filter({secret})(f"<{told}>"))
    assert "***" in hidden
    assert encode(secret.encode()[1:-1])[4:-4] not in hidden


def test_encodings_of_short_secrets_are_not_hidden() -> None:
    """They would take parts out of texts that have nothing to do with them."""
    assert secret_filter({"abc"})("616263 YWJj") == "616263 YWJj"
