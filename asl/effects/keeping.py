"""What an execution keeps of itself beside the answers of its effects, and how it finds it again.

Effects are performed alike whether an execution is kept or not. Where something has to outlive the
process, they tell the `Keeping` of the execution: `Nothing`, or that of a journal
(`asl.effects.journal_keeping`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from asl.core.values import Json
from asl.effects.services import Started
from asl.engine.agent import Call
from asl.engine.checkpoints import Checkpoint
from asl.engine.frame import Frame as EngineFrame
from asl.engine.ledger import Ledger
from asl.engine.usage import UNSPENT, Spent
from asl.program import Program
from asl.states.blocks.budget import Amounts
from asl.states.calls import Options
from asl.states.decisions import Asked
from asl.states.effects import Child, Frame

if TYPE_CHECKING:
    from asl.effects.agent_caller import AgentCaller
    from asl.effects.agent_turn import AgentTurn
    from asl.effects.children import Begun
    from asl.effects.jobs import Ending, Job

__all__ = ["NOTHING", "Keeping", "Nothing"]


class Keeping(Protocol):
    """What is told of an execution so that another process can go on with it."""

    keeps: bool
    """Whether anything is kept at all."""

    # The execution as a whole

    def enter_event_loop(self) -> None:
        """Know that the execution runs under an event loop from now on."""
        ...

    def close(self) -> None:
        """Know that the execution runs no more in this process."""
        ...

    def watch(self, ledger: Ledger) -> None:
        """Bring a new ledger to where that of an earlier process was."""
        ...

    def leave(self, frame: EngineFrame, failed: bool) -> None:
        """Keep where the top machine stands when the execution ends without success."""
        ...

    def is_paused(self) -> bool:
        """Whether the history says already that the execution is paused."""
        ...

    def keep_spending(self) -> None:
        """Keep what the execution has spent."""
        ...

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep a new checkpoint."""
        ...

    def cut_off(self, at: Frame, now: float) -> None:
        """Give up what the children of a fork that has failed have asked and started."""
        ...

    # Calls of agents

    async def admitted(self, at: Frame) -> None:
        """Keep that a call is about to be made, and what is held for it."""
        ...

    def begin_attempt(self, call: Call, options: Options) -> None:
        """Set when an attempt began, which may have been in an earlier process.

        Raises:
            StateError: States.Timeout, if its time is over.
        """
        ...

    def used(self, at: Frame, used: Amounts) -> None:
        """Keep what a call counts as for its state."""
        ...

    def progressed(self, at: Frame) -> None:
        """Keep the progress of a call."""
        ...

    def unshown(self, at: Frame, said: str | None) -> None:
        """Keep what an agent has said that may not be shown yet."""
        ...

    def recorded(self, key: str) -> Json:
        """Return what was recorded within the effect under way, None for nothing."""
        ...

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Record something within the effect under way, durably."""
        ...

    # Requests to people

    def told(self, asked: Asked) -> None:
        """Keep which notices were sent, and which of them failed."""
        ...

    def recorded_decision(self, asked: Asked) -> Json:
        """Take up the decision that people have recorded elsewhere, None without one."""
        ...

    async def decide(
        self,
        at: Frame,
        key: str,
        ask: Callable[[Asked], Awaitable[Json]],
        new: Callable[[], Asked],
    ) -> Json:
        """Return the decision on a request about the whole execution, asked for once.

        Args:
            at: The machine whose call needs it.
            key: Names the request among those of the execution.
            ask: Brings a request to its decision.
            new: Returns a new request.
        """
        ...

    # The turns of agents that need consent to their tool calls

    def begin_turn(self, turn: AgentTurn) -> Mapping[str, int]:
        """Return how many events of a turn the history has, by what they are about."""
        ...

    def pause_turn(self, turn: AgentTurn, noted: Mapping[str, int]) -> None:
        """Keep the events of a turn that is paused: its agent may do something else next time."""
        ...

    async def awaits_consent(self, turn: AgentTurn) -> bool:
        """Whether a turn was paused, and people have not decided since."""
        ...

    async def consent(self, turn: AgentTurn, asked: Asked) -> Json:
        """Return people's consent to a tool call, asked for once."""
        ...

    def withdraw(self, within: str, now: float) -> None:
        """Close the requests whose keys begin so: nothing depends on them any more."""
        ...

    # Executions of their own

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin an execution of the workflow that *find* gives, or find it begun."""
        ...

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Do it for one that goes by a name of its own; None where another one has that."""
        ...

    def counted(self, child: Child) -> Spent:
        """Return what of a child's spending was counted before it went on."""
        ...

    def count(self, child: Child, spent: Spent) -> None:
        """Keep what of a child's spending is counted."""
        ...

    def detach(self, begun: Begun) -> None:
        """Let an execution go on by itself: the state that has started it has ended without it."""
        ...

    async def await_job(self, caller: AgentCaller, call: Call, job: Job) -> Ending:
        """Return the result of a job, or the answer to the token of its state."""
        ...


class Nothing:
    """Keeps nothing: the execution ends with its process (protocol `Keeping`)."""

    keeps = False

    def enter_event_loop(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def watch(self, ledger: Ledger) -> None:
        """Do nothing."""

    def leave(self, frame: EngineFrame, failed: bool) -> None:
        """Do nothing."""

    def is_paused(self) -> bool:
        """Return False: the history tells of every pause."""
        return False

    def keep_spending(self) -> None:
        """Do nothing."""

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Do nothing."""

    def cut_off(self, at: Frame, now: float) -> None:
        """Do nothing."""

    async def admitted(self, at: Frame) -> None:
        """Do nothing."""

    def begin_attempt(self, call: Call, options: Options) -> None:
        """Do nothing: it begins now."""

    def used(self, at: Frame, used: Amounts) -> None:
        """Do nothing."""

    def progressed(self, at: Frame) -> None:
        """Do nothing."""

    def unshown(self, at: Frame, said: str | None) -> None:
        """Do nothing."""

    def recorded(self, key: str) -> Json:
        """Return None: nothing was recorded."""
        return None

    async def record(self, at: Frame, key: str, value: Json) -> None:
        """Do nothing."""

    def told(self, asked: Asked) -> None:
        """Do nothing."""

    def recorded_decision(self, asked: Asked) -> Json:
        """Return None: nobody decides elsewhere."""
        return None

    async def decide(
        self,
        at: Frame,
        key: str,
        ask: Callable[[Asked], Awaitable[Json]],
        new: Callable[[], Asked],
    ) -> Json:
        """Ask."""
        return await ask(new())

    def begin_turn(self, turn: AgentTurn) -> Mapping[str, int]:
        """Return nothing: the turn was never paused."""
        return {}

    def pause_turn(self, turn: AgentTurn, noted: Mapping[str, int]) -> None:
        """Do nothing."""

    async def awaits_consent(self, turn: AgentTurn) -> bool:
        """Return False: the turn was never paused."""
        return False

    async def consent(self, turn: AgentTurn, asked: Asked) -> Json:
        """Ask."""
        from asl.effects.asking import ToolAsking

        return await ToolAsking(turn.caller, turn, asked).decision()

    def withdraw(self, within: str, now: float) -> None:
        """Do nothing."""

    def begin_child(self, at: Frame, child: Child, find: Callable[[], Program]) -> Begun:
        """Begin an execution of the workflow that *find* gives."""
        from asl.effects.children import Begun

        return Begun(find(), child.data)

    def begin_started(self, at: Frame, program: Program, child: Started) -> Begun | None:
        """Begin an execution that goes by a name of its own."""
        from asl.effects.children import Begun

        return Begun(program, child.data)

    def counted(self, child: Child) -> Spent:
        """Return nothing: each child begins here."""
        return UNSPENT

    def count(self, child: Child, spent: Spent) -> None:
        """Do nothing."""

    def detach(self, begun: Begun) -> None:
        """Do nothing: here nothing outlives the execution that has started it."""

    async def await_job(self, caller: AgentCaller, call: Call, job: Job) -> Ending:
        """Return the result of a job, or the answer to the token of its state."""
        from asl.effects.jobs import await_job

        return await await_job(caller.runtime, call, job)


NOTHING = Nothing()
