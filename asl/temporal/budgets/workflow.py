"""The workflow that holds a shared budget: a pool, or what a workflow spends per hour or day.

Executions change it one after the other: an execution holds it, which gives it the budget, and then
sends its change. An execution that does not come back loses its turn, and its late change counts.

Changes of a holder have numbers. A worker that dies may have sent changes that are not in the
history of its workflow; they are undone when the workflow sends a change of the same number again.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final, NotRequired, TypedDict

from temporalio import workflow

from asl.core.values import Json
from asl.engine.pool_entries import release_entries
from asl.temporal.budgets.changes import Change, apply, compare, invert
from asl.temporal.payloads import pack, unpack

__all__ = [
    "BUDGET",
    "EXCHANGE",
    "VALUE",
    "BudgetStart",
    "BudgetWorkflow",
    "ExchangeMessage",
    "Grant",
]

BUDGET: Final = "asl.Budget"
"""Type of the workflow."""
EXCHANGE: Final = "asl.budget.exchange"
VALUE: Final = "asl.budget.value"
"""Names of the update and of the query."""
MAX_EVENTS: Final = 2000
"""Events of a run after which the budget continues in another one."""
TURN: Final = timedelta(seconds=30)
"""Time after which a holder that does not come back loses its turn, if others wait."""
SILENT: Final = 60.0
"""Age in seconds of a reservation from which on its workflow may have ended."""
REMEMBERED: Final = 3600.0
"""Seconds for which the changes of a holder can be undone after its last message."""


class BudgetStart(TypedDict):
    """Input of the workflow."""

    content: NotRequired[str]
    """Packed content of the former run."""


class ExchangeMessage(TypedDict):
    """A change of a holder."""

    holder: str
    """Unique name of a run of a workflow, or of a call."""
    workflow: str
    """Id of its workflow."""
    number: int
    """Number of the change."""
    recorded: int
    """Number from which on the holder may repeat changes."""
    change: Change
    holds: bool
    """Whether it waits for its turn and holds the budget, or leaves it to others."""
    ended: list[str]
    """Ids of workflows that have ended, whose reservations are released."""
    now: float
    """Time of the holder in epoch seconds."""


class Grant(TypedDict):
    """The budget, for its holder."""

    value: str
    """The packed budget."""
    silent: list[str]
    """Ids of other workflows with old reservations."""


@workflow.defn(name=BUDGET, sandboxed=False)
class BudgetWorkflow:
    """Holds a shared budget until it is terminated."""

    @workflow.init
    def __init__(self, start: BudgetStart) -> None:
        content: Json = unpack(start["content"]) if "content" in start else [{}, {}, {}, []]
        self._value: Json = content[0]
        self._holders: dict[str, Json] = content[1]
        """Time of the last message of each holder, and its changes that may be undone: their
        numbers and what undoes them."""
        self._owners: dict[str, list[Json]] = content[2]
        """Workflow of each entry and its time."""
        self._turns: list[str] = content[3]
        """The present holder, and those that wait."""

    @workflow.run
    async def run(self, start: BudgetStart) -> None:
        """Wait for updates, and continue in a new run before the history is too long."""
        while not self._is_long():
            await workflow.wait_condition(lambda: len(self._turns) > 1 or self._is_long())
            await self._watch_turn()
        await workflow.wait_condition(workflow.all_handlers_finished)
        least = workflow.time() - REMEMBERED
        holders = {name: each for name, each in self._holders.items() if each[0] > least}
        content = pack([self._value, holders, self._owners, self._turns])
        workflow.continue_as_new(BudgetStart(content=content))

    async def _watch_turn(self) -> None:
        """Return when the present holder has left; end its turn if it takes too long."""
        turn = self._turns[:1]
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._turns[:1] != turn or self._is_long(), timeout=TURN
            )
            return
        self._turns.remove(turn[0])

    def _is_long(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() > MAX_EVENTS

    @workflow.update(name=EXCHANGE)
    async def exchange(self, message: ExchangeMessage) -> Grant | None:
        """Apply a change, and return the budget to the holder whose turn it is.

        Returns:
            The budget; None for one that does not hold it, which may try again.
        """
        self._change(message)
        holder = message["holder"]
        if not message["holds"]:
            if holder in self._turns:
                self._turns.remove(holder)
            return None
        if holder not in self._turns:
            self._turns.append(holder)
        await workflow.wait_condition(
            lambda: self._is_turn(holder) or holder not in self._turns or self._is_long()
        )
        if not self._is_turn(holder):
            return None
        least, own = workflow.time() - SILENT, message["workflow"]
        silent = {of for of, since in self._owners.values() if since < least and of != own}
        return Grant(value=pack(self._value), silent=sorted(silent))

    def _is_turn(self, holder: str) -> bool:
        return self._turns[:1] == [holder]

    def _change(self, message: ExchangeMessage) -> None:
        number, of = message["number"], message["workflow"]
        _, kept = self._holders.get(message["holder"], (0.0, []))
        kept = [each for each in kept if each[0] >= message["recorded"]]
        while kept and kept[-1][0] >= number:
            self._apply(kept.pop()[1], of)
        if message["change"]:
            kept.append([number, invert(message["change"], self._value)])
            self._apply(message["change"], of)
        self._holders[message["holder"]] = [workflow.time(), kept]
        for ended in message["ended"]:
            self._release(ended, message["now"])

    def _apply(self, change: Change, of: str) -> None:
        self._value = apply(self._value, change)
        for entry, value in change.get("open", {}).items():
            if value is None:
                self._owners.pop(entry, None)
            else:
                self._owners[entry] = [of, workflow.time()]

    def _release(self, ended: str, now: float) -> None:
        """Release the reservations of a workflow that has ended."""
        entries = [entry for entry, (of, _) in self._owners.items() if of == ended]
        if entries:
            after = release_entries(self._value, entries, now)
            self._apply(compare(self._value, after), ended)

    @workflow.query(name=VALUE)
    def value(self) -> str:
        """Return the packed budget."""
        return pack(self._value)
