"""How a process of a function is started: its command, its environment, and what prevents it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from asl.functions.processes import ProcessSpec
from asl.sources.lambda_function import LambdaFunction
from asl.sources.read_context import REGION

__all__ = ["NotRunnable", "process_spec"]

BOOTSTRAPS: Final = Path(__file__).parent
NODE_ENDINGS: Final = (".js", ".mjs", ".cjs")


class NotRunnable(Exception):
    """The code of a function cannot be run here; the message says why."""


def process_spec(
    function: LambdaFunction,
    commands: Mapping[str, Sequence[str]],
    variables: Mapping[str, str] = {},
    *,
    watch: bool,
) -> ProcessSpec:
    """Return how a process of a function is started.

    Args:
        function: The function; its code is in a folder.
        commands: Commands by runtime: the interpreter for Python and Node, else the whole runtime.
        variables: Environment variables of all functions.
        watch: Whether to replace processes when the code changes.

    Raises:
        NotRunnable: Its code cannot be run here.
    """
    if function.problem is not None:
        raise NotRunnable(function.problem)
    folder = os.path.realpath(function.code)
    if not os.path.isdir(folder):
        kind = "is an archive: extract it" if os.path.exists(folder) else "does not exist"
        raise NotRunnable(f"its code {function.code!r} {kind}")
    layers = [os.path.realpath(each) for each in function.layers]
    command = _command(function, commands, folder, layers)
    lambda_variables = _variables(function, folder, layers)
    environment = {**os.environ, **lambda_variables, **variables, **function.environment}
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise NotRunnable(f"its environment variable {name!r} cannot be set")
    return ProcessSpec(command, folder, environment, (folder, *layers) if watch else ())


def _command(
    function: LambdaFunction,
    commands: Mapping[str, Sequence[str]],
    folder: str,
    layers: Sequence[str],
) -> list[str]:
    runtime = function.runtime
    given = commands.get(runtime)
    if runtime.startswith("python"):
        paths = [folder, *_python_folders(runtime, layers)]
        _find_python_module(function.handler, paths)
        python = given or [sys.executable]
        return [*_located(python), "-u", str(BOOTSTRAPS / "bootstrap.py"), *paths]
    if runtime.startswith("nodejs"):
        _find_node_module(function.handler, folder)
        node = given or ["node"]
        if shutil.which(node[0]) is None:
            raise NotRunnable(f"{node[0]!r} is not installed, which runs {runtime}")
        return [*_located(node), str(BOOTSTRAPS / "bootstrap.mjs")]
    if given is None:
        if not runtime:
            raise NotRunnable("the template names no runtime for it")
        text = f"no command is known for the runtime {runtime}: give one with"
        raise NotRunnable(f"{text} --runtime {runtime}=COMMAND")
    return _located(given)


def _located(command: Sequence[str]) -> list[str]:
    """Return a command whose program is found from the folder of the code, too.

    A path of the current folder is made absolute; any other path starts in the folder of the code.
    """
    program, *arguments = command
    if "/" in program and os.path.isfile(program):
        program = os.path.abspath(program)
    return [program, *arguments]


def _python_folders(runtime: str, layers: Sequence[str]) -> Iterator[str]:
    """Yield the folders of modules in layers; a layer that is not built has them at its top."""
    for layer in layers:
        found = [
            os.path.join(layer, "python", "lib", runtime, "site-packages"),
            os.path.join(layer, "python"),
        ]
        yield from [each for each in found if os.path.isdir(each)] or [layer]


def _find_python_module(handler: str, folders: Sequence[str]) -> None:
    """Raise NotRunnable unless there is a module of this handler."""
    path = handler.rpartition(".")[0].replace(".", "/")
    for folder in folders:
        place = os.path.join(folder, path)
        if os.path.isfile(f"{place}.py") or os.path.isdir(place):
            return
    raise NotRunnable(f"its code has no {path or handler}.py for the handler {handler!r}")


def _find_node_module(handler: str, folder: str) -> None:
    """Raise NotRunnable unless there is a module of this handler."""
    path, _, _ = os.path.basename(handler).partition(".")
    path = os.path.normpath(os.path.join(os.path.dirname(handler), path))
    if path.startswith(("..", "/")):
        raise NotRunnable(f"the handler {handler!r} is outside its code")
    if any(os.path.isfile(os.path.join(folder, path + ending)) for ending in NODE_ENDINGS):
        return
    text = f"its code has no {path}.js, .mjs or .cjs for the handler {handler!r}"
    if os.path.isfile(os.path.join(folder, f"{path}.ts")):
        text += f": build {path}.ts first, and name the built template"
    raise NotRunnable(text)


def _variables(function: LambdaFunction, folder: str, layers: Sequence[str]) -> dict[str, str]:
    """Return the environment variables that Lambda sets."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or REGION
    instance = os.urandom(16).hex()
    version = function.runtime.removeprefix("nodejs").partition(".")[0]
    modules = [
        os.path.join(layer, "nodejs", *inner, "node_modules")
        for layer in layers
        for inner in ((f"node{version}",), ())
    ]
    return {
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{instance}",
        "AWS_REGION": region,
        "LAMBDA_TASK_ROOT": folder,
        "NODE_PATH": os.pathsep.join(modules),
        "PYTHONDONTWRITEBYTECODE": "1",  # a file of the same second and size would be used again
        "TZ": ":UTC",
        "_HANDLER": function.handler,
    }
