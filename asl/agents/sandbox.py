"""Sandboxes of tools: each call gets a program of its own, confined as `Sandbox` says (8.9).

`process` is bubblewrap where it is there: the program sees no network, an empty `/tmp` and no home
folders, and writes to its own folder only. Limits of memory and processors are the system's own.
`docker` is the program of that name, `wasm` the library wasmtime in a process of its own. A
process that cannot be confined as configured is refused.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from asl.agents.child_process import ChildProcess
from asl.agents.process import answer_in, ask
from asl.core.environment import install_command
from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact
from asl.engine.agent import Call, ExternalAgent
from asl.expr.times import parse_duration
from asl.states.blocks.tool_policy import (
    Mount,
    parse_image,
    parse_mounts,
    parse_processors,
    parse_size,
)
from asl.states.errors import RaisedError

__all__ = ["SandboxedProgram", "confined_command", "confined_function", "confined_program"]

HIDDEN: Final = ("/tmp", "/home", "/root", "/run", "/var", "/srv", "/mnt", "/media")
"""The folders of the machine that a sandbox does not see."""
PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ")
"""The variables of this process that a sandbox sees."""
PROCESSES: Final = 512
"""Of one container."""
MAX_FILES: Final = 256
MAX_WRITTEN: Final = 1024**3
"""Bytes of a file that a sandboxed program can write."""
GONE: Final = 5.0
"""Seconds that a runtime may take to say whether it is there, or to end a container."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """The fields of `Sandbox` that have been looked at."""

    environment: str
    image: str | None
    memory: int | None
    cpu: float | None
    network: bool
    read_only: bool
    mounts: list[Mount]


@dataclass(frozen=True, slots=True)
class _Job:
    """A program that is to be confined."""

    command: list[str]
    folder: str
    environment: Mapping[str, str]
    readable: tuple[str, ...] = ()
    """The paths that it reads outside of the folder."""


@dataclass(frozen=True, slots=True)
class SandboxedProgram:
    """A program in a sandbox, which may be started any number of times."""

    command: list[str]
    environment: dict[str, str]
    folder: str
    network: bool
    processors: int | None = None
    opens_files: bool = False
    """Whether it sees the files of this machine, not only those that are mounted."""
    at_end: list[str] = field(default_factory=list)
    """A command that ends what the process itself does not end."""

    def start(self) -> ChildProcess:
        """Start it; raises StateError where that cannot be."""
        with _bound_to(self.processors):
            return ChildProcess(self.command, self.folder, self.environment)

    async def end(self, program: ChildProcess) -> None:
        """End what was started, and see it gone."""
        code = program.process.poll()
        program.end()
        if self.at_end and (code is None or code < 0):  # else the confined process has ended
            from asyncio import to_thread
            from subprocess import DEVNULL, Popen, TimeoutExpired

            with suppress(OSError, TimeoutExpired):
                # Started in one step, which no cancellation comes before.
                ending = Popen(self.at_end, stdout=DEVNULL, stderr=DEVNULL)
                await to_thread(ending.wait, GONE)


async def confined_command(
    command: list[str],
    folder: str | None,
    environment: Mapping[str, str],
    settings: Mapping[str, Json],
    tool: str,
) -> SandboxedProgram:
    """Return a command as it is started in a sandbox; raises RaisedError("States.Permissions")."""
    return await _confined(_Job(command, folder or os.getcwd(), environment), settings, tool)


async def confined_program(
    command: list[str],
    folder: str | None,
    environment: Mapping[str, str],
    settings: Mapping[str, Json],
    tool: str,
) -> _Sandboxed:
    """Return an agent for a command in a sandbox; raises RaisedError("States.Permissions")."""
    return _Sandboxed(await confined_command(command, folder, environment, settings, tool))


async def confined_function(
    name: str, folders: Sequence[Path], settings: Mapping[str, Json], tool: str
) -> _Sandboxed:
    """Return the agent that runs a named function in a sandbox; raises as a program does."""
    if settings.get("Environment", "process") != "process":
        text = f"tool {tool!r}: a function runs in a sandbox 'process' only"
        raise RaisedError("States.Permissions", text)
    paths = _python_path()
    code = [str(folder.resolve()) for folder in folders]
    readable = (*paths.split(os.pathsep), *code, sys.prefix, sys.base_prefix, sys.exec_prefix)
    environment = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "asl.agents.function_process", name, *code]
    job = _Job(command, os.getcwd(), environment, readable)
    return _Sandboxed(await _confined(job, settings, tool))


async def _confined(job: _Job, settings: Mapping[str, Json], tool: str) -> SandboxedProgram:
    try:
        read = _read(settings)
        confined: SandboxedProgram = await _ENVIRONMENTS[read.environment](job, read)
    except (ValueError, ExpressionFault) as fault:
        raise RaisedError("States.Permissions", f"tool {tool!r}: Sandbox: {fault}") from None
    return confined


def _read(settings: Mapping[str, Json]) -> _Settings:
    """Return the settings; raises ValueError for those that are none."""
    environment = settings.get("Environment", "process")
    if environment not in _ENVIRONMENTS:
        raise ValueError(f"there is no environment {environment!r} here")
    if "Timeout" in settings:
        parse_duration(settings["Timeout"])  # the broker sees to it
    for name in ("Network", "ReadOnlyFS"):
        if type(settings.get(name, False)) is not bool:
            raise ValueError(f"{name} must be true or false")
    return _Settings(
        environment,
        parse_image(settings["Image"]) if "Image" in settings else None,
        parse_size(settings["Memory"]) if "Memory" in settings else None,
        parse_processors(settings["CPU"]) if "CPU" in settings else None,
        settings.get("Network", False),
        settings.get("ReadOnlyFS", False),
        parse_mounts(settings["Mounts"]) if "Mounts" in settings else [],
    )


class _Sandboxed(ExternalAgent):
    """One call of a program in a sandbox."""

    def __init__(self, confined: SandboxedProgram) -> None:
        self.started = confined
        self.enforces_hosts = not confined.network
        self.reaches_network = confined.network
        self.opens_files = confined.opens_files
        self.programs: set[ChildProcess] = set()

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Start the program, ask it once and end it."""
        assert call is not None
        program = self.started.start()
        self.programs.add(program)
        try:
            await program.connect()
            return answer_in(await ask(program, payload, call))
        finally:
            await self._end(program)

    async def _end(self, program: ChildProcess) -> None:
        self.programs.discard(program)
        await self.started.end(program)

    async def close(self) -> None:
        """End every program."""
        for program in list(self.programs):
            await self._end(program)


@contextmanager
def _bound_to(count: int | None) -> Iterator[None]:
    """Let what is started meanwhile run on so many processors only."""
    if count is None:
        yield
        return
    available = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(available)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, available)


def _variables(job: _Job) -> dict[str, str]:
    """Return the environment of a sandbox: nothing that could be a secret of this process."""
    own = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**own, **job.environment}


# The environments


async def _process(job: _Job, settings: _Settings) -> SandboxedProgram:
    if settings.image is not None:
        raise ValueError("a process takes no 'Image'")
    if settings.cpu is not None and not settings.cpu.is_integer():
        raise ValueError(f"'CPU' of a process must be a whole number, not {settings.cpu:g}")
    if settings.cpu is not None and not hasattr(os, "sched_setaffinity"):
        raise ValueError("this system does not limit the processors of a process")
    limits = ["ulimit -c 0", f"ulimit -n {MAX_FILES}", f"ulimit -f {MAX_WRITTEN // 512}"]
    if settings.memory is not None:
        limits.append(f"ulimit -v {max(1, settings.memory // 1024)}")
    limited = ["/bin/sh", "-c", " && ".join([*limits, 'exec "$@"']), "sh", *job.command]
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        asked = [
            name
            for name, is_asked in (
                ("no network", not settings.network),
                ("ReadOnlyFS", settings.read_only),
                ("Mounts", bool(settings.mounts)),
            )
            if is_asked
        ]
        if asked:
            raise ValueError(
                f"{', '.join(asked)}: that needs bubblewrap (bwrap), which is not installed"
            )
        command = limited
    else:
        command = [bubblewrap, *_view(job, settings), "--", *limited]
    count = None if settings.cpu is None else int(settings.cpu)
    return SandboxedProgram(
        command, _variables(job), job.folder, settings.network, count, opens_files=True
    )


def _view(job: _Job, settings: _Settings) -> list[str]:
    """Return the arguments of bubblewrap for the visible files of the program."""
    words = ["--die-with-parent", "--unshare-all", "--cap-drop", "ALL"]
    if settings.network:
        words.append("--share-net")
    for folder in sorted(f"/{name}" for name in os.listdir("/")):
        if os.path.islink(folder):
            words += ["--symlink", os.readlink(folder), folder]
        elif folder not in HIDDEN and folder not in ("/dev", "/proc"):
            words += ["--ro-bind", folder, folder]
    words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    program = shutil.which(job.command[0], path=_variables(job).get("PATH"))
    readable = [*job.readable]
    if program is not None:
        readable += [os.path.dirname(program), os.path.dirname(os.path.realpath(program))]
        if sys.executable and os.path.samefile(program, sys.executable):
            readable += [sys.prefix, sys.base_prefix]
    hidden = [each for each in dict.fromkeys(readable) if each.startswith(HIDDEN)]
    for path in sorted(hidden):
        words += ["--ro-bind", path, path]
    words += ["--ro-bind" if settings.read_only else "--bind", job.folder, job.folder]
    for mount in settings.mounts:
        only_read = mount.read_only or settings.read_only
        words += ["--ro-bind" if only_read else "--bind", _source(job, mount), mount.target]
    return [*words, "--remount-ro", "/", "--chdir", job.folder]


def _source(job: _Job, mount: Mount) -> str:
    """Return what is mounted, its links followed; raises ValueError if it is not there."""
    source = os.path.realpath(os.path.join(job.folder, mount.source))
    if not os.path.exists(source):  # docker would make a folder of that name
        raise ValueError(f"Mounts: there is no {mount.source!r}")
    return source


async def _docker(job: _Job, settings: _Settings) -> SandboxedProgram:
    docker = shutil.which("docker")
    if docker is None or not await _answers([docker, "version", "--format", "{{.Server.Version}}"]):
        raise ValueError("docker is not installed or not running")
    if settings.image is None:
        raise ValueError("docker needs an 'Image'")
    name = f"asl-{os.urandom(8).hex()}"
    words = [docker, "run", "--rm", "-i", "--init", "--name", name, "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--pids-limit", str(PROCESSES)]
    words += ["--pull", "never"]  # a document that names an image fetches nothing
    words += ["--network", "bridge" if settings.network else "none"]
    if settings.memory is not None:
        words += ["--memory", str(settings.memory), "--memory-swap", str(settings.memory)]
    if settings.cpu is not None:
        words += ["--cpus", f"{settings.cpu:g}"]
    if settings.read_only:
        words.append("--read-only")
    for mount in settings.mounts:
        source = _source(job, mount)
        mode = "ro" if mount.read_only or settings.read_only else "rw"
        words += ["--volume", f"{source}:{mount.target}:{mode}"]
    for key in job.environment:  # whose values docker takes from its own: arguments are seen
        words += ["--env", key]
    command = [*words, settings.image, *job.command]
    at_end = [docker, "kill", name]
    return SandboxedProgram(
        command, {**os.environ, **job.environment}, job.folder, settings.network, at_end=at_end
    )


async def _wasm(job: _Job, settings: _Settings) -> SandboxedProgram:
    if find_spec("wasmtime") is None:
        raise ValueError(f"wasmtime is not installed: {install_command('wasm')}")
    if settings.image is not None or settings.cpu is not None or settings.network:
        raise ValueError("WebAssembly takes no 'Image', 'CPU' or 'Network' here")
    folders: list[tuple[str, str, bool]] = []
    for mount in settings.mounts:
        source = os.path.realpath(os.path.join(job.folder, mount.source))
        if not os.path.isdir(source):
            raise ValueError(f"Mounts: there is no folder {mount.source!r}")
        folders.append((source, mount.target, not (mount.read_only or settings.read_only)))
    seen = compact({"memory": settings.memory, "folders": folders})
    words = [sys.executable, "-P", "-m", "asl.agents.wasm", seen, *job.command]
    own = {"PYTHONPATH": _python_path(), "ASL_WASM": compact(dict(job.environment))}
    environment = _variables(_Job([], job.folder, own))
    return SandboxedProgram(words, environment, job.folder, network=False)


def _python_path() -> str:
    """Return where a Python of our own finds what this one does."""
    return os.pathsep.join(os.path.abspath(each) for each in sys.path if os.path.exists(each))


async def _answers(command: list[str]) -> bool:
    """Whether a command succeeds in time."""
    from asyncio import wait_for
    from asyncio.subprocess import DEVNULL, create_subprocess_exec

    process = await create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
    try:
        return await wait_for(process.wait(), GONE) == 0
    except TimeoutError:
        process.kill()
        await process.wait()
        return False


_ENVIRONMENTS: Final[Mapping[str, Any]] = {"process": _process, "docker": _docker, "wasm": _wasm}
