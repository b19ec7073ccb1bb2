"""What tools reach: addresses that are really connected to, and files after links."""

import _thread
import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.agents import HttpAgent, McpServer, ModelAgent, ProcessAgent
from asl.effects.tools.bounds import CallBounds
from asl.states.blocks.tool_policy import AccessBounds
from asl.states.errors import RaisedError

from ..agents.servers import Exchange, HttpServer, serving
from .workflows import answer, shows, task, told, use

Json = Any
MCP = Path(__file__).parents[1] / "agents" / "mcp_server.py"
USES = {"Type": "Task", "Agent": "U"}
ALL = {"Allowed": ["*", "localhost", "127.*"]}
LOCAL = {"Domains": {"Allowed": ["127.0.0.1"]}}


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A server that says yes, or sends elsewhere."""

    def reply(exchange: Exchange) -> None:
        if exchange.path.startswith("/to/"):
            exchange.answer(302, Location=exchange.path[4:])
        else:
            exchange.answer(200, {"yes": exchange.headers["host"]})

    with serving(reply) as running:
        yield running


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names with the addresses that they have, one look-up after the other; the last one stays."""
    table: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def looked_up(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        if isinstance(host, bytes):
            host = host.decode()
        if host in table:
            found = table[host]
            address = found.pop(0) if len(found) > 1 else found[0]
            return real(address, port, *more, **options)
        if host == "unknown.example":
            raise socket.gaierror(8, "not known")
        return real(host, port, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    return table


def port(server: HttpServer) -> int:
    return int(server.url.rpartition(":")[2])


# Endpoints


def test_an_endpoint_within_its_domains_answers(server: HttpServer) -> None:
    """The address is allowed, and the request is the one that it would have been."""
    result = use(HttpAgent(server.url), policy=LOCAL)
    assert answer(result) == {"yes": f"127.0.0.1:{port(server)}"}


def test_an_endpoint_outside_is_not_connected_to(server: HttpServer) -> None:
    """By its name, before it is looked up."""
    result = use(HttpAgent(server.url), policy={"Domains": {"Allowed": ["*.example.com"]}})
    assert result.error == "States.Permissions"
    assert not server.requests


@pytest.mark.parametrize(
    ("addresses", "allowed", "denied", "error"),
    [
        (["127.0.0.1"], ["*.example.com"], [], "States.Permissions"),
        (["127.0.0.1"], ["*.example.com", "127.*"], [], None),
        (["127.0.0.1"], ["*"], ["127.0.0.1"], "States.Permissions"),
        (["127.0.0.1"], ["*"], ["127.*"], "States.Permissions"),
        (["::ffff:127.0.0.1"], ["*.example.com"], [], "States.Permissions"),
        (["127.0.0.1", "93.184.216.34"], ["*.example.com", "127.*"], [], None),
    ],
)
def test_a_name_is_held_to_its_address(
    server: HttpServer,
    names: dict[str, list[str]],
    addresses: list[str],
    allowed: list[str],
    denied: list[str],
    error: str | None,
) -> None:
    """Looked up once: whoever changes the address in between (the last row) is not asked again."""
    names["api.example.com"] = list(addresses)
    policy = {"Domains": {"Allowed": allowed, "Denied": denied}}
    result = use(HttpAgent(f"http://api.example.com:{port(server)}/"), policy=policy)
    assert result.error == error, result.cause
    assert len(server.requests) == (error is None)
    if error is None:
        assert answer(result) == {"yes": f"api.example.com:{port(server)}"}


def test_rebinding_gains_nothing(server: HttpServer, names: dict[str, list[str]]) -> None:
    """A name that is public when it is looked at, and local after that, is connected to as seen."""
    names["evil.example.com"] = ["192.0.2.1", "127.0.0.1"]
    policy = {"Domains": {"Allowed": ["*.example.com", "192.0.2.*"]}, "Timeout": "200ms"}
    result = use(HttpAgent(f"http://evil.example.com:{port(server)}/"), policy=policy)
    assert result.error == "Agent.ToolError"
    assert not server.requests


def test_a_redirection_stays_within(server: HttpServer) -> None:
    """Another origin is never followed, the same one is looked at again."""
    policy = LOCAL
    inside = use(HttpAgent(f"{server.url}/to//again", method="GET", redirects=1), policy=policy)
    assert inside.ok, inside.cause
    target = f"http://localhost:{port(server)}/"
    outside = use(HttpAgent(f"{server.url}/to/{target}", method="GET", redirects=1), policy=policy)
    assert outside.error == "Agent.ToolError"


def test_an_unknown_host_is_a_failure() -> None:
    """It is allowed, but it is not there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", _unknown)
        policy = {"Domains": {"Allowed": ["unknown.example"]}}
        result = use(HttpAgent("http://unknown.example/"), policy=policy)
    assert result.error == "Agent.ToolError"
    assert "unknown.example" in (result.cause or "")


def _unknown(*arguments: Any, **options: Any) -> Any:
    raise socket.gaierror(8, "not known")


# Functions


def connecting(arguments: Json) -> Json:
    with socket.create_connection((arguments["to"], arguments["port"]), timeout=5):
        return "connected"


async def connecting_async(arguments: Json) -> Json:
    import asyncio

    _, writer = await asyncio.open_connection(arguments["to"], arguments["port"])
    writer.close()
    return "connected"


@pytest.mark.parametrize("function", [connecting, connecting_async])
def test_a_function_connects_where_it_may(
    server: HttpServer, names: dict[str, list[str]], function: Any
) -> None:
    """What counts is where it connects, whatever it was told and however it says so."""
    names["api.example.com"] = names["evil.test"] = ["127.0.0.1"]

    def run(to: str, *allowed: str) -> str | None:
        policy = {"Domains": {"Allowed": list(allowed)}}
        return use(function, {"to": to, "port": port(server)}, policy).error

    assert run("127.0.0.1", "127.0.0.1") is None
    assert run("api.example.com", "api.example.com", "127.0.0.1") is None
    assert run("localhost", "localhost") is None
    assert run("127.0.0.1", "*.example.com") == "States.Permissions"
    assert run("api.example.com", "api.example.com") == "States.Permissions"
    assert run("evil.test", "api.example.com") == "States.Permissions"


def test_a_function_that_is_redirected_is_stopped(server: HttpServer) -> None:
    """A library that follows a redirection does so within the same bounds."""

    def fetch(arguments: Json) -> Json:
        with urllib.request.urlopen(arguments["url"]) as response:
            return response.read().decode()

    assert answer(use(fetch, {"url": f"{server.url}/"}, LOCAL))
    away = f"{server.url}/to/http://localhost:{port(server)}/"
    result = use(fetch, {"url": away}, LOCAL)
    assert result.error == "States.Permissions"
    assert "'localhost'" in (result.cause or "")


def test_only_denied_domains() -> None:
    """Where only some hosts are denied, all others may be reached; the denied one by no name."""
    with serving(lambda exchange: exchange.answer(200, 1)) as server:
        where = {"to": "127.0.0.1", "port": port(server)}
        assert use(connecting, where, {"Domains": {"Denied": ["*.internal"], **ALL}}).ok
        for denied in ("127.0.0.1", "localhost"):
            for to in ("127.0.0.1", "localhost", "0", "0.0.0.0", "127.1", "0x7f000001"):
                result = use(
                    connecting, where | {"to": to}, {"Domains": {"Denied": [denied], **ALL}}
                )
                assert result.error == "States.Permissions", to


def within(domains: Json) -> CallBounds:
    """Return the bounds of a call by a policy of hosts."""
    reach = AccessBounds.of_hosts({"Domains": domains})
    assert reach is not None
    return CallBounds("t", [reach], [], None)


PRIVATE = (
    "127.0.0.1 2130706433 0x7f000001 0177.0.0.1 127.1 0 127.0.0.1. 127.255.0.1 0.0.0.0 "
    "169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 100.64.0.1 ::1 "
    "[::1] :: ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 ::ffff:0:127.0.0.1 2002:7f00:1:: "
    "64:ff9b::169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 fd00:ec2::254 fe80::1 "
    "fe80::1%eth0 fc00::1 ff02::1 224.0.0.1 239.1.1.1 10.0.0.1 172.16.0.1 192.168.1.1 "
    "255.255.255.255 240.0.0.1 192.0.2.1 198.18.0.1 2001::1 \uff11\uff12\uff17.0.0.1 "
    "127\u30020\u30020\u30021 "
)


@pytest.mark.parametrize("host", PRIVATE.split())
@pytest.mark.parametrize("domains", [{"Denied": ["evil.com"]}, {"Allowed": ["*"]}])
def test_private_addresses_are_denied_unless_named(
    host: str, domains: dict[str, list[str]]
) -> None:
    """In whatever form they are written, and by whatever pattern all hosts are allowed."""
    bounds = within(domains)
    address = host.strip("[]").rstrip(".")
    if address.isascii():
        with pytest.raises(RaisedError, match="is at"):
            bounds.admit("public.example", address)
    named = within({"Denied": [host]})
    with pytest.raises(RaisedError):
        named.name(host)


def test_public_addresses_are_reached_where_only_some_hosts_are_denied() -> None:
    """What belongs to the internet needs no name."""
    bounds = within({"Denied": ["evil.com"]})
    for address in ("93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"):
        bounds.admit("public.example", address)


def test_a_denied_name_is_denied_by_its_address(names: dict[str, list[str]]) -> None:
    """Another name of the same host, and its address, are denied as well."""
    names["evil.com"] = names["alias.example"] = ["93.184.216.34"]
    for host in ("alias.example", "93.184.216.34", "1572395042", "::ffff:93.184.216.34"):
        agent = HttpAgent(f"http://{f'[{host}]' if ':' in host else host}:9/", method="GET")
        result = use(agent, policy={"Domains": {"Denied": ["evil.com"]}})
        assert result.error == "States.Permissions", (host, result.cause)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_of_a_function_are_held_to_its_bounds(folder: Path) -> None:
    """Those that it starts itself, and those of a pool."""
    secret = str(folder / "secret" / "k.txt")

    def in_thread(arguments: Json) -> Json:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(Path(secret).read_text()))
        thread.start()
        thread.join()
        return found

    def in_pool(arguments: Json) -> Json:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(Path(secret).read_text).result()

    for function in (in_thread, in_pool):
        assert "key" in str(answer(use(function)))
        assert "key" not in str(use(function, policy=DATA).output)


def test_threads_below_threading_are_held_to_its_bounds(folder: Path) -> None:
    """Those that a function starts without a `Thread`."""
    secret = str(folder / "secret" / "k.txt")

    def low_level(arguments: Json) -> Json:
        found: list[str] = []
        ended = _thread.allocate_lock()
        ended.acquire()

        def read() -> None:
            with suppress(PermissionError):
                found.append(Path(secret).read_text())
            ended.release()

        _thread.start_new_thread(read, ())
        with ended:
            return found

    assert "key" in str(answer(use(low_level)))
    assert answer(use(low_level, policy=DATA)) == []


def test_the_pool_of_the_event_loop_is_held_to_the_bounds_of_each_call(folder: Path) -> None:
    """Its threads outlive a call, and serve what is outside of all bounds."""
    secret = str(folder / "secret" / "k.txt")

    async def in_executor(arguments: Json) -> Json:
        return await asyncio.get_running_loop().run_in_executor(None, Path(secret).read_text)

    async def in_thread(arguments: Json) -> Json:
        return await asyncio.to_thread(Path(secret).read_text)

    async def both(function: Any) -> None:
        for _ in range(2):  # a thread that has started outside of bounds, and one within
            for policy, found in ((None, True), (DATA, False)):
                calls = [{"tool": "tool", "arguments": {}}]
                agents = {"A": {"use": calls}}
                result = await asl.arun(task(policy), agents=agents, tools={"tool": function})
                assert ("key" in str(result.output)) == found
                assert result.error == (None if found else "States.Permissions")

    for function in (in_executor, in_thread):
        asyncio.run(both(function))


def run_marked(policy: Json, program: Any, default: Json = None, **fields: Json) -> asl.Result:
    """Run a Task that marks that it has run, and then one with a policy; a tool is a program."""
    states = {
        "Mark": {"Type": "Task", "Agent": "Mark", "Next": "T"},
        "T": {"Type": "Task", "Agent": "A", "End": True, "Tools": policy, **fields},
    }
    document: Json = {"StartAt": "Mark", "States": states}
    if default is not None:
        document["DefaultTools"] = default
    agents = {"Mark": {"return": "marked"}, "A": {"return": "done"}}
    return asl.run(document, agents=agents, tools={"tool": program})


FILES: Json = {"DeniedPaths": ["/etc/**"]}


@pytest.mark.parametrize(
    "policy",
    [
        {"FileSystem": FILES},
        {"FileSystem": FILES, "Sandbox": {"Environment": "process"}},
        {"FileSystem": FILES, "Sandbox": {"Network": True}},
        {"FileSystem": FILES, "Sandboxed": False, "Sandbox": {"Environment": "wasm"}},
        {"FileSystem": FILES, "Allowed": ["*"]},
        {"FileSystem": {"AllowedPaths.$": "$.paths"}},
        {"FileSystem": FILES, "Timeout": "5s", "Parameters": {"tool": {"x.$": "$.x"}}},
    ],
)
def test_a_policy_that_cannot_hold_is_refused_before_anything_runs(policy: Json) -> None:
    """Whether the tool would be called or not; the state cannot catch it."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "T"}]
    result = run_marked(policy, ProcessAgent(["cat"]), Catch=catch)
    assert (result.error, result.output) == ("States.Permissions", None)
    assert "state 'T': tool 'tool': 'FileSystem' cannot limit" in (result.cause or "")
    assert not [event for event in result.events if event.type.endswith("StateEntered")]


@pytest.mark.parametrize(
    "policy",
    [
        {"FileSystem": FILES, "Denied": ["to*"]},
        {"FileSystem": FILES, "Allowed": ["other"]},
        {"FileSystem": FILES, "Allowed": []},
        {"FileSystem": FILES, "Sandbox": {"Environment": "wasm"}},
        {"FileSystem": FILES, "Sandbox": {"Environment": "docker", "Image": "python:3.12"}},
        {"Timeout": "5s"},
    ],
)
def test_a_policy_that_holds_is_not_refused(policy: Json) -> None:
    """Because the tool is denied, or runs where it sees no files of the machine."""
    assert run_marked(policy, ProcessAgent(["cat"])).output == "done"


def test_policies_of_the_document_and_of_the_operator_are_looked_at_first() -> None:
    """And those of whoever has started an execution."""
    program = ProcessAgent(["cat"])
    assert (
        run_marked({"Timeout": "5s"}, program, {"FileSystem": FILES}).error == "States.Permissions"
    )
    agents, tools = {"A": {"return": 1}}, {"tool": program}
    operator = {"Tools": {"FileSystem": FILES}}
    result = asl.run(task(), agents=agents, tools=tools, policy=operator)
    assert result.error == "States.Permissions"
    parent = {
        "DefaultTools": {"FileSystem": FILES},
        "StartAt": "W",
        "States": {"W": {"Type": "Workflow", "WorkflowId": "child", "End": True}},
    }
    result = asl.run(parent, agents=agents, tools=tools, workflows={"child": task()})
    assert "'FileSystem' cannot limit" in (result.cause or "")


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ({}, "States.Permissions"),
        ({"Allowed": ["files/*"]}, "States.Permissions"),
        ({"Allowed": ["files/add"]}, "States.Permissions"),
        ({"Denied": ["files/*"]}, None),
        ({"Allowed": ["other/*"]}, None),
    ],
)
def test_servers_are_looked_at_before_they_start(policy: Json, error: str | None) -> None:
    """As far as a policy means all of their tools, or some by their whole names."""
    server = McpServer([sys.executable, str(MCP)])
    document = task({"FileSystem": FILES, **policy})
    result = asl.run(document, agents={"A": {"return": 1}}, tools={"files": server})
    assert result.error == error


@pytest.mark.parametrize(
    "tool", [ProcessAgent(["cat"]), McpServer([sys.executable, str(MCP)]).tool("add")]
)
def test_files_of_a_program_cannot_be_limited(tool: Any) -> None:
    """The call is refused, with what to use instead."""
    result = use(tool, {"a": 1, "b": 2}, {"FileSystem": {"DeniedPaths": ["/etc/**"]}})
    assert result.error == "States.Permissions"
    assert "'FileSystem' cannot limit" in (result.cause or "")
    assert "sandbox" in (result.cause or "")


def test_a_function_within_bounds_starts_no_programs() -> None:
    """They could not be watched."""

    def shell(arguments: Json) -> Json:
        return subprocess.run(["echo", "x"], capture_output=True).returncode

    assert answer(use(shell)) == 0

    def process(arguments: Json) -> Json:
        child = multiprocessing.get_context("spawn").Process(target=os.getpid)
        child.start()
        child.join()
        return child.exitcode

    for policy in (LOCAL, {"FileSystem": {"DeniedPaths": ["/nowhere"]}}):
        for function in (shell, process):
            assert use(function, policy=policy).error == "States.Permissions"


# Others


@pytest.mark.parametrize(
    "tool",
    [
        ProcessAgent(["cat"]),
        McpServer([sys.executable, str(MCP)]).tool("add"),
        ModelAgent("openai:gpt-5", key="k"),
    ],
)
def test_what_cannot_be_seen_is_refused(tool: Any) -> None:
    """Nobody could say which hosts they reach."""
    result = use(tool, {"a": 1, "b": 2}, LOCAL)
    assert result.error == "States.Permissions"
    assert "its connections cannot be checked" in (result.cause or "")
    assert "TaskStateEntered" not in {event.type for event in result.events}  # nothing has run


@contextmanager
def mcp_server() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(MCP), str(number)])
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", number)) == 0:
                    break
            assert process.poll() is None
        yield number
    finally:
        process.kill()
        process.wait()


def test_a_server_is_held_to_its_address(names: dict[str, list[str]]) -> None:
    """An MCP server with a URL connects to what was looked at; another state may use it freely."""
    names["localhost"] = ["127.0.0.1"]
    with mcp_server() as number:
        tool = McpServer(url=f"http://localhost:{number}/mcp").tool("add")
        arguments = {"a": 1, "b": 2}
        refused = use(tool, arguments, {"Domains": {"Allowed": ["mcp.example.com"]}})
        assert refused.error == "States.Permissions", refused.cause
        calls = [{"tool": "t", "arguments": arguments, "tolerate": True}]
        bound = {"Domains": {"Allowed": ["localhost"]}}
        result = asl.run(
            {
                "StartAt": "A",
                "States": {
                    "A": {"Type": "Task", "Agent": "U", "ResultPath": "$.a", "Next": "B"},
                    "B": {**USES, "ResultPath": "$.b", "Tools": bound, "Next": "C"},
                    "C": {**USES, "ResultPath": "$.c", "End": True},
                },
            },
            agents={"U": {"use": calls}},
            tools={"t": tool},
        )
        assert result.output == {"a": [3], "b": [3], "c": [3]}, (result.error, result.cause)
        names["localhost"] = ["10.0.0.1"]
        assert use(tool, arguments, bound).error == "States.Permissions"


# Files


def reading(arguments: Json) -> Json:
    with open(arguments["name"]) as file:
        return file.read()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what may be read, what may not, and links from one to the other."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "data/a.txt": "fine",
        "data/b.txt": "b" * 100,
        "secret/k.txt": "key",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data" / "link.txt").symlink_to(tmp_path / "secret" / "k.txt")
    (tmp_path / "data" / "way").symlink_to(tmp_path / "secret")
    (tmp_path / "other").symlink_to(tmp_path / "data")
    return tmp_path


DATA = {"FileSystem": {"AllowedPaths": ["./data/**"]}}


def test_files_are_those_behind_links(folder: Path) -> None:
    """A link out of what is allowed is refused, one into it is not."""
    assert answer(use(reading, {"name": "data/a.txt"}, DATA)) == "fine"
    assert answer(use(reading, {"name": "other/a.txt"}, DATA)) == "fine"
    for name in ("data/link.txt", "data/way/k.txt", "data/../secret/k.txt", "secret/k.txt"):
        result = use(reading, {"name": name}, DATA)
        assert result.error == "States.Permissions", name
    linked = {"FileSystem": {"AllowedPaths": ["./other/*"]}}
    assert answer(use(reading, {"name": "data/a.txt"}, linked)) == "fine"


def test_a_function_opens_what_it_may(folder: Path) -> None:
    """Whatever its arguments say: it is watched while it runs, also in what it writes and lists."""

    def opens(arguments: Json) -> Json:
        return reading({"name": "sec" + "ret/k.txt"})

    def writes(arguments: Json) -> Json:
        Path("data", "new.txt").write_text("x")
        return Path("new.txt").write_text("x")

    def lists(arguments: Json) -> Json:
        return os.listdir("secret")

    def imports(arguments: Json) -> Json:
        import wave  # not loaded yet: Python itself reads it

        return wave.__name__

    assert answer(use(imports, policy=DATA)) == "wave"
    for function in (opens, writes, lists):
        result = use(function, policy=DATA)
        assert result.error == "States.Permissions", function
        assert told(result) == [("ToolCalled", "tool", "States.Permissions")]
    assert (folder / "data" / "new.txt").exists()
    assert not (folder / "new.txt").exists()


@shows("effect:Tools/FileSystem/MaxFileSize")
def test_a_file_may_be_as_large_as_the_limit(folder: Path) -> None:
    """100 bytes are not more than 100."""
    policy = {"FileSystem": {"MaxFileSize": "100B"}}
    assert answer(use(reading, {"name": "data/b.txt"}, policy)) == "b" * 100


@shows("violation:Tools/FileSystem/MaxFileSize")
def test_a_larger_file_is_refused(folder: Path) -> None:
    """Before it is opened."""
    result = use(reading, {"name": "data/b.txt"}, {"FileSystem": {"MaxFileSize": "99B"}})
    assert result.error == "States.Permissions"
    assert "more than 99 bytes" in (result.cause or "")


def test_paths_of_a_program_begin_in_its_folder(folder: Path) -> None:
    """Its own, and those of the policy."""
    reach = AccessBounds.of_files({"FileSystem": {"AllowedPaths": ["./*.txt"]}})
    assert reach is not None
    bounds = CallBounds("t", [], [reach], str(folder / "data"))
    bounds.check({"path": "a.txt"})
    for path in ("link.txt", "way/k.txt", "../secret/k.txt", str(folder / "secret" / "k.txt")):
        with pytest.raises(RaisedError):
            bounds.check({"path": path})
