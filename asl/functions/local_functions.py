"""The Lambda functions of a template, bound to their local code."""

from __future__ import annotations

import os
from asyncio import (
    Task,
    current_task,
    gather,
    new_event_loop,
    run_coroutine_threadsafe,
    wrap_future,
)
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Thread
from typing import Final

from asl.agents.aws_lambda import cause_text, function_failure, request_id
from asl.core.environment import require_posix
from asl.core.errors import StateError
from asl.core.json_text import MAX_ANSWER_VALUES, ValueCounter, read_data
from asl.core.values import Json, compact, encode
from asl.engine.agent import Agent, Call
from asl.engine.definitions import AgentDefinition
from asl.expr.text_matching import compile_glob
from asl.functions.commands import NotRunnable, process_spec
from asl.functions.processes import MAX_WORKERS, FunctionProcesses
from asl.functions.runtime_api import Answer, FunctionEvent
from asl.sources.lambda_function import LambdaFunction
from asl.states.calls import Target, is_function
from asl.states.errors import RaisedError

__all__ = ["LocalFunctions"]

PATTERN: Final = "arn:*:lambda:*:*:function:"
"""The ARN of a function of any account and region."""


def _print_log(function: str, line: str) -> None:
    print(f"{function}: {line}")


class LocalFunctions:
    """Binds the Lambda functions of a template to their local code.

    Their processes start with the first events and end with `close`, or at the end of a `with`
    block. The code runs with the rights of the user.

        with LocalFunctions(load_functions("template.yaml", variables={})) as functions:
            asl.run(document, resources=functions.resources)

    Args:
        functions: The functions.
        commands: Commands by runtime, such as `{"provided.al2023": ["./bootstrap"]}`. For Python
            and Node it is the interpreter, for others a program that uses AWS's Runtime API.
        bound: Resources, or patterns of them, that are bound already: their functions are not.
        watch: Whether to replace the processes of a function when a file of its code changes.
        log: Receives the name of a function and a line that it writes; standard output by default.
        limit: Maximum number of processes of each function.
        variables: Environment variables of all functions.
    """

    def __init__(
        self,
        functions: Iterable[LambdaFunction],
        *,
        commands: Mapping[str, Sequence[str]] = {},
        bound: Iterable[str] = (),
        watch: bool = False,
        log: Callable[[str, str], object] = _print_log,
        limit: int = MAX_WORKERS,
        variables: Mapping[str, str] = {},
    ) -> None:
        require_posix("a function in a process of its own")
        self.agents: dict[LambdaFunction, LocalFunctionAgent] = {}
        """The bound functions."""
        self.unbound: dict[LambdaFunction, str] = {}
        """The other functions, and why they are not bound."""
        self._host = _Host()
        taken = [compile_glob(each) for each in bound]
        for each in functions:
            if any(matches(arn) for matches in taken for arn in each.arns):
                self.unbound[each] = "an agents file binds it"
                continue
            try:
                code = self._host.with_code(each)
                spec = process_spec(code, commands, variables, watch=watch)
            except NotRunnable as reason:
                self.unbound[each] = str(reason)
                continue
            processes = FunctionProcesses(spec, _logger(log, each.logical), limit)
            self._host.processes.append(processes)
            self.agents[each] = LocalFunctionAgent(each, processes, self._host)

    @property
    def resources(self) -> dict[str, LocalFunctionAgent]:
        """The bound functions by ARN: the ARNs of the template, and any ARN with their names."""
        found: dict[str, LocalFunctionAgent] = {}
        for function, agent in self.agents.items():
            for name in function.other_names:
                found.setdefault(PATTERN + name, agent)
        for function, agent in self.agents.items():
            found[PATTERN + function.name] = agent
        exact = {arn: agent for function, agent in self.agents.items() for arn in function.arns}
        return {**exact, **found}

    def lines(self) -> list[str]:
        """Return a line for each function: its code, or why it is not bound."""
        found = []
        for function in self.agents:
            shown = "code in the template"
            if function.inline is None:
                shown = os.path.join(os.path.relpath(function.code), function.handler)
            line = f"{function.logical}: {shown} ({function.runtime})"
            if function.missing_layers:
                line += f", without the layers {', '.join(function.missing_layers)}"
            found.append(line)
        return found + [f"{each.logical} is not bound: {why}" for each, why in self.unbound.items()]

    def close(self) -> None:
        """End all processes."""
        self._host.close()

    def __enter__(self) -> LocalFunctions:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _logger(log: Callable[[str, str], object], name: str) -> Callable[[str], object]:
    return lambda line: log(name, line)


class _Host:
    """The thread with the event loop of all processes, which several runs share."""

    def __init__(self) -> None:
        self.processes: list[FunctionProcesses] = []
        self._calls: set[Task[Answer]] = set()
        self.loop = new_event_loop()
        self._thread = Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._folder: TemporaryDirectory[str] | None = None

    def with_code(self, function: LambdaFunction) -> LambdaFunction:
        """Return a function whose code is in a folder, written there from the template."""
        if function.inline is None:
            return function
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="asl-functions-")
        folder = Path(mkdtemp(dir=self._folder.name))
        ending = "py" if function.runtime.startswith("python") else "js"
        (folder / f"index.{ending}").write_text(function.inline, encoding="utf-8")
        return replace(function, code=str(folder))

    def close(self) -> None:
        """End all processes and the thread."""
        if not self.loop.is_closed():
            run_coroutine_threadsafe(self._end(), self.loop).result()
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()
        if self._folder is not None:
            self._folder.cleanup()

    async def invoke(self, processes: FunctionProcesses, invocation: FunctionEvent) -> Answer:
        """Return the answer of a function; called in the thread."""
        task = current_task()
        assert task is not None
        self._calls.add(task)
        try:
            return await processes.invoke(invocation)
        finally:
            self._calls.discard(task)

    async def _end(self) -> None:
        for task in self._calls:
            task.cancel()
        await gather(*self._calls, return_exceptions=True)
        for each in self.processes:
            await each.close()


class LocalFunctionAgent(Agent):
    """A Lambda function whose code runs in processes of this machine."""

    needs_loop = waits_outside = opens_files = True

    def __init__(
        self,
        function: LambdaFunction,
        processes: FunctionProcesses,
        host: _Host,
        arn: str | None = None,
    ) -> None:
        self.function = function
        self.processes = processes
        self.host = host
        self.arn = arn or function.arns[0]

    def bound_to(
        self, target: Target, *, aws: bool, definition: AgentDefinition | None = None
    ) -> Agent:
        """Return the function as it is invoked by the ARN of a target."""
        arn = target.name
        if not is_function(arn) or "*" in arn or not (arn.isascii() and arn.isprintable()):
            return self
        return LocalFunctionAgent(self.function, self.processes, self.host, arn)

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Return the answer of a process of the function.

        Raises:
            StateError: The function fails, by the name and with the cause that AWS reports.
        """
        assert call is not None
        invocation = FunctionEvent(
            request_id(call),
            encode(payload),
            self.arn,
            self.function.timeout,
            call.client_context,
        )
        started = run_coroutine_threadsafe(
            self.host.invoke(self.processes, invocation), self.host.loop
        )
        try:
            answer = await wrap_future(started)
        except OSError as error:
            program = self.processes.spec.command[0]
            text = f"{self.function.logical}: cannot start {program!r}: {error.strerror}"
            raise StateError("States.TaskFailed", text) from error
        return _result(answer, call)


def _result(answer: Answer, call: Call) -> Json:
    """Return the result in an answer; raises the failure in it."""
    value, fault = None, ""
    try:
        if not ValueCounter(MAX_ANSWER_VALUES).feed(answer.body):
            raise ValueError(f"more than {MAX_ANSWER_VALUES} values")
        value = read_data(answer.body.decode())
    except ValueError as error:
        fault = str(error)
    if answer.ok and not fault:
        return value
    if answer.ok:
        text = f"Unable to parse response body: {fault}"
        cause = {"errorType": "Runtime.InvalidResponse", "errorMessage": text}
        raise RaisedError("Runtime.InvalidResponse", cause_text(cause, call))
    body = answer.body.decode(errors="replace")
    raise function_failure(body if fault or not call.target.invokes else compact(value), value)
