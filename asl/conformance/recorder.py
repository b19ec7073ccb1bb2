"""A run becomes a case: agents are recorded while they answer, and scripted from then on.

    recording = Recording()
    result = asl.run(document, data, agents=recording.around(agents))
    case = recording.case("review/pr-17", document, data, result)

The case is a JSON object in the format of `conformance/README.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from asl.agents.adapters import as_agent
from asl.core.document import Document
from asl.core.errors import StateError
from asl.core.values import Json, compact, copy_foreign
from asl.engine.agent import Agent, AgentWrapper, Call, Openable, OpenAgents, open_agent
from asl.engine.execution import Execution
from asl.engine.map_run import ChildExecution
from asl.engine.result import Result
from asl.expr.times import format_timestamp
from asl.states.calls import Target

__all__ = ["Recording", "literal"]

SCHEDULED = ("TaskScheduled", "LambdaFunctionScheduled", "ActivityScheduled")
HANG = {"hang": True}
"""How an answer is scripted that did not come before the state gave up."""


class Recording:
    """What agents were asked and answered in one execution.

    Bind agents through `around` before the run; `case` turns the run into a conformance case.
    """

    def __init__(self) -> None:
        self.calls: list[_Exchange] = []

    def wrap(self, bindings: Mapping[str, Any]) -> dict[str, Openable]:
        """Return the same bindings (of agents, resources or mocks) with every call recorded."""
        return {name: _Around(as_agent(value, name), self) for name, value in bindings.items()}

    def case(
        self,
        id: str,
        document: Document,
        input: Json,
        result: Result,
        workflows: Mapping[str, Document] | None = None,
    ) -> dict[str, Json]:
        """Return the run as a case that expects its result, with scripted agents.

        *workflows* are those that the document may start.
        """
        execution = result.execution
        mocks: dict[str, list[_Exchange]] = {}
        others: dict[str, dict[str, list[_Exchange]]] = {"agent": {}, "resource": {}}
        for each in self.calls:
            # A mock replaces the agent of a Task of this document only.
            mocked = each.execution == execution.id and not each.target.is_helper
            name = each.target.state if mocked else each.target.name
            (mocks if mocked else others[each.target.kind]).setdefault(name, []).append(each)
        expect: dict[str, Json] = {"status": result.status}
        if result.ok:
            expect["output"] = literal(result.output)
        else:
            expect |= {"error": result.error, "cause": result.cause}
        expect["visited"] = result.visited
        case: dict[str, Json] = {
            "id": id,
            "title": f"{execution.program.name} ends {result.status}",
            "document": document.composed_value,
            "input": input,
            "profile": execution.program.profile.name,
            "clock": format_timestamp(execution.started),
            "name": execution.name,
            "mocks": _scripts(mocks) | _told(result, mocks.keys()),
            "agents": _scripts(others["agent"]),
            "resources": _scripts(others["resource"]),
            "workflows": {name: each.composed_value for name, each in (workflows or {}).items()},
            "expect": expect,
        }
        return {
            key: value
            for key, value in case.items()
            if value or key not in ("agents", "resources", "workflows")
        }


class _Exchange:
    """One call: who was asked what in which execution, and the script of what was answered."""

    __slots__ = ("execution", "request", "script", "target")

    def __init__(self, request: Json, target: Target, execution: str) -> None:
        self.request = copy_foreign(request)
        self.target = target
        self.execution = execution
        self.script: dict[str, Json] = HANG

    def record_answer(self, result: Json, call: Call) -> None:
        if not call.cancelled:
            self.script = {"return": copy_foreign(result)}


class _Around:
    """An agent that is to be recorded in a run."""

    def __init__(self, agent: Agent | Openable, recording: Recording) -> None:
        self.agent = agent
        self.recording = recording

    def open_agent(self, open_agents: OpenAgents) -> Agent:
        """Return the agent of one run, recorded."""
        return _Recorded(open_agent(self.agent, open_agents), self.recording)


class _Recorded(AgentWrapper):
    """An agent that writes down what passes through it."""

    def __init__(self, agent: Agent, recording: Recording) -> None:
        super().__init__(agent)
        self.recording = recording

    def answer(self, payload: Json, call: Call | None) -> Json:
        """Let the agent answer."""
        assert call is not None
        exchange = _Exchange(payload, call.target, _asking(call))
        self.recording.calls.append(exchange)
        if not self.blocking:
            return self._awaited(exchange, payload, call)
        with _errors_written(exchange):
            result = self.agent.answer(payload, call)
            exchange.record_answer(result, call)
        return result

    async def _awaited(self, exchange: _Exchange, payload: Json, call: Call) -> Json:
        with _errors_written(exchange):
            result = await self.agent.answer(payload, call)
            exchange.record_answer(result, call)
        return result


def _asking(call: Call) -> str:
    """Return the id of the execution whose document asks: for an item it is that of its Map."""
    at: Any = call.at
    execution: Execution = at.execution
    return (
        execution.run.history_execution if isinstance(execution, ChildExecution) else execution
    ).id


@contextmanager
def _errors_written(exchange: _Exchange) -> Iterator[None]:
    """Write down what the agent raises; a cancelled call stays one that is never answered."""
    try:
        yield
    except StateError as error:
        exchange.script = _raise(error.name, error.cause)
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        exchange.script = _raise("States.TaskFailed", text)
        raise


def _raise(name: str | None, cause: str | None) -> dict[str, Json]:
    both = {"Error": name, "Cause": cause}
    return {"raise": {key: value for key, value in both.items() if value is not None}}


def _told(result: Result, recorded: Collection[str]) -> dict[str, dict[str, Json]]:
    """Script the Tasks whose answer is not that of an agent: it came by token, or from the run.

    Their requests hold tokens and ids, so answers go by their order alone.
    """
    targets = {
        step.name: Target("resource", step.resource, step.name)
        for machine in result.execution.program.machines.values()
        for step in machine.steps.values()
        if step.resource is not None
    }
    states = {name for name, each in targets.items() if name not in recorded or each.by_token}
    calls: dict[str, list[_Exchange]] = {}
    under_way: dict[tuple[str | int, ...], _Exchange] = {}
    for event in result.events:
        state, details = event.path[-1] if event.path else "", event.details
        if event.type in SCHEDULED and state in states:
            exchange = _Exchange(None, targets[str(state)], result.id)
            under_way[event.path] = exchange
            calls.setdefault(str(state), []).append(exchange)
        elif event.type.endswith("Succeeded") and event.path in under_way:
            under_way.pop(event.path).script = {"return": details["output"]}
        elif event.type.endswith("Failed") and event.path in under_way:
            script = _raise(details.get("error"), details.get("cause"))
            under_way.pop(event.path).script = script
    return {state: _sequence(each) for state, each in calls.items()}


def _scripts(calls: Mapping[str, list[_Exchange]]) -> dict[str, Json]:
    return {name: _script(each) for name, each in calls.items()}


def _script(calls: list[_Exchange]) -> dict[str, Json]:
    """Script the calls of one state or agent: by request where that differs, or by order."""
    rows: dict[str, list[_Exchange]] = {}
    for call in calls:
        rows.setdefault(compact(call.request), []).append(call)
    if len(rows) == 1:
        return _sequence(calls)
    return {
        "table": [
            {"when": literal(same[0].request), "then": _sequence(same)} for same in rows.values()
        ]
    }


def _sequence(calls: list[_Exchange]) -> dict[str, Json]:
    scripts = [call.script for call in calls]
    return scripts[0] if all(each == scripts[0] for each in scripts) else {"sequence": scripts}


def literal(value: Json) -> Json:
    """Return the pattern that only this value matches, even if it looks like a wild card."""
    if type(value) is list:
        return [literal(item) for item in value]
    if type(value) is not dict:
        return value
    members = {key: literal(item) for key, item in value.items()}
    looks_wild = len(members) == 1 and next(iter(members)).startswith("$")
    return {"$partial": members} if looks_wild else members
