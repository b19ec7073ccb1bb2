"""One run of a program: its identity, what it has spent, and its flat history."""

from collections.abc import Callable, Mapping
from copy import copy
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, Self

from asl.core.errors import StateError
from asl.core.values import Json
from asl.core.work import STEP_BYTES, WorkMeter
from asl.engine.checkpoints import definition_hash
from asl.engine.history_quota import HistoryCounter
from asl.engine.ledger import Ledger
from asl.engine.usage import (
    NO_USAGE,
    UNSPENT,
    ZERO,
    CallUsage,
    ExecutionSpending,
    Price,
    UsageTotals,
    add_to,
    reported_usage,
)
from asl.program import Program
from asl.states.blocks.policy import Rules
from asl.states.effects import Record

__all__ = ["ARN", "DEFAULT_IDENTITY", "ROLE", "Execution", "Identity", "execution_id"]

REGION = "us-east-1"
ARN = f"arn:aws:states:{REGION}:111111111111"
"""Ids have the form of AWS's, so that documents which take them apart run unchanged."""
ROLE = "arn:aws:iam::111111111111:role/local"


class EventChannels(Protocol):
    """The channels to which a document sends events."""

    def open(self, place: tuple[str | int, ...], block: Callable[[str], Json]) -> None:
        """Open the channels of a document that is included at a place; raises StateError."""
        ...


class Identity(NamedTuple):
    """Who an execution is, beside its workflow and its input."""

    name: str | None = None
    """None for a new one, which gets a name when somebody asks for it."""
    workflow_id: str | None = None
    """The id by which the workflow was asked for, None for that of its name."""
    express: bool = False
    asynchronous: bool = False
    """Whether an express one was started by somebody who does not wait for its end."""
    requestor: str | None = None
    """Who has started it."""
    started: float | None = None
    """Epoch seconds at which it began, None for now."""
    limit: float | None = None
    """Seconds that whoever has started it gives it, beside its own limit."""
    redrives: int = 0
    """How often it went on after its end, from a checkpoint or from where it had failed."""
    redriven: float | None = None
    """When it last did."""
    rights: tuple[Any, ...] = ()
    """The tool policies of the executions around it, the outermost first."""


DEFAULT_IDENTITY = Identity()
"""That of an execution of which nothing is known."""


MANY_ITEMS: Final = "let a distributed Map read them, or raise the bound: --quota max_items=N"
FAIR: Final = 200_000
"""Steps of work after which an execution lets others run: about a twentieth of a second."""


class Execution:
    """One run of a program; shared by all of its machines.

    `started` is in epoch seconds, `deadline` the epoch second at which it times out. Usage is
    counted here (`usage`, `by_state`, `by_model`), whatever becomes of the states.
    """

    # What every execution has lies in slots, what only some have in the dictionary; and nothing is
    # called to make one: an `__init__` would double the price.
    __slots__ = (
        "__dict__",
        "busy",
        "counter",
        "draw",
        "emit",
        "history",
        "identity",
        "input",
        "ledger",
        "program",
        "started",
        "usage",
        "work",
    )
    program: Program
    input: Json
    started: float
    history: list[Any]
    emit: Callable[[Record], object]
    """Take one history record."""
    identity: Identity
    draw: Callable[[], str]
    """Give it a name where its identity has none."""
    usage: UsageTotals
    ledger: Ledger | None
    """Counts what every level has spent, where a budget limits any."""
    counter: HistoryCounter | None
    """Counts the events of the history, where a quota limits them."""
    work: WorkMeter | None
    """The work of the state that is evaluated now, None before anything was to count."""
    busy: int
    """Steps of work since others could run."""

    role: str | None = ROLE
    """The role that the context object names."""
    index = 0
    """The number of a child execution."""
    earlier: Callable[[list[Any]], list[Any]] | None = None
    """Reads what was recorded before this process, to stand in front of a flat history."""
    listener: Any = None
    """Takes its events; one that has a method `within` knows who takes those of an execution that a
    state starts."""
    delivery: EventChannels | None = None
    """Takes events to the channels of the document, where there are any."""
    items = 0
    """Items of its Maps so far."""
    recorded = True
    """Whether there is a history, so that a cause can name an event of it."""
    context: Mapping[str, Json] | None = None
    """The context object that the caller gave, None for the true one."""
    prices: Mapping[str, Price] = MappingProxyType({})
    child_records: Callable[[Record], object] | None = None
    """Takes the records of child executions, where more is done with them than to keep what they
    tell."""
    default_tools: Rules | None = None
    """What the `DefaultTools` of the document came to, once anybody has asked."""

    def init(
        self,
        program: Program,
        data: Json,
        started: float,
        history: list[Any],
        identity: Identity = DEFAULT_IDENTITY,
        draw: Callable[[], str] = str,
    ) -> Self:
        """Set what every execution has, and return it."""
        self.program = program
        self.input = data
        self.started = started
        self.history = history
        self.identity = identity
        self.draw = draw
        self.usage = NO_USAGE
        self.ledger = self.counter = self.work = None
        self.busy = 0
        return self

    @property
    def whole(self) -> "Execution":
        """The execution whose history tells of this one."""
        return self

    def meter(self) -> WorkMeter:
        """Return the meter of its work, which exists from the first evaluation on."""
        if self.work is None:
            self.work = WorkMeter()
        return self.work

    def count_received(self, size: int) -> None:
        """Count the bytes of a value that came from outside as work, and as held in memory."""
        self.meter().built += size
        self.whole.busy += size // STEP_BYTES

    def count_work(self) -> bool:
        """Count what evaluations have spent as work of the execution.

        Every state has all of the limits of work for itself. Returns whether others are to run now.
        """
        if self.work is not None:
            self.busy += self.work.renew()
        return self.busy >= FAIR

    def count_items(self, count: int) -> None:
        """Count items of a Map; raises StateError (States.Runtime) for too many."""
        self.items += count
        most = self.program.profile.max_items
        if self.items > most:
            cause = f"the Map states of the execution have more than {most} items: {MANY_ITEMS}"
            raise StateError("States.Runtime", cause)

    def complete(self, flat: list[Any]) -> None:
        """Put what was recorded before this process in front of a flat history, once."""
        if self.earlier is not None:
            earlier, self.earlier = self.earlier, None
            flat[:0] = earlier(flat)

    @property
    def name(self) -> str:
        """The name of the execution."""
        if self.identity.name is None:
            # Plain agents ask in threads of their own, maybe at once: one draw counts for all.
            name = vars(self).setdefault("drawn", self.draw())
            self.identity = self.identity._replace(name=name)
        return self.identity.name or ""

    @property
    def id(self) -> str:
        """The id of the execution, in the form of AWS's."""
        return execution_id(self.workflow_id, self.name, self.express)

    @property
    def workflow_id(self) -> str:
        """The id of the workflow, in the form of AWS's."""
        return self.identity.workflow_id or f"{ARN}:stateMachine:{self.program.name}"

    @property
    def workflow(self) -> str:
        """The workflow's name, and its part of the ids."""
        return self.workflow_id.rpartition(":stateMachine:")[2]

    @property
    def home(self) -> str:
        """What the ids begin with: partition, region and account."""
        return self.workflow_id.rpartition(":stateMachine:")[0]

    @property
    def counts_redrives(self) -> bool:
        """Whether expressions see how often it was redriven; not in a synchronous one (AWS)."""
        return self.identity.asynchronous or not self.identity.express

    @property
    def express(self) -> bool:
        """Whether it is an express one."""
        return self.identity.express

    @property
    def requestor(self) -> str | None:
        """Who has started it."""
        return self.identity.requestor

    @property
    def rights(self) -> tuple[Any, ...]:
        """The tool policies of the executions around it, the outermost first."""
        return self.identity.rights

    @property
    def redrives(self) -> int:
        """How often it went on after its end."""
        return self.identity.redrives

    @property
    def redriven(self) -> float | None:
        """When it last did, in epoch seconds."""
        return self.identity.redriven

    def with_redrives(self, redrives: int, redriven: float | None) -> "Execution":
        """Return this execution as expressions saw it after so many redrives."""
        if self.redrives == redrives:
            return self
        earlier = copy(self)
        earlier.identity = self.identity._replace(
            name=self.name, redrives=redrives, redriven=redriven
        )
        return earlier

    @property
    def deadline(self) -> float | None:
        """The epoch second at which it times out, None for never; a redrive begins anew."""
        quotas = self.program.profile.quotas
        quota = quotas.express_seconds if self.express else quotas.standard_seconds
        limits = (self.program.timeout, self.identity.limit, quota)
        given = [each for each in limits if each is not None]
        if not given:
            return None
        began = self.started if self.redriven is None else self.redriven
        return began + min(given)

    @cached_property
    def definition(self) -> str:
        """The hash of the document."""
        return definition_hash(self.program.document)

    @cached_property
    def by_state(self) -> dict[str, tuple[Decimal, int]]:
        """Cost and tokens by the name of the state."""
        return {}

    @cached_property
    def by_model(self) -> dict[str, tuple[Decimal, int]]:
        """Cost and tokens by the model that the agent named."""
        return {}

    def account(self, state: str, result: Json) -> CallUsage:
        """Count the usage that an agent reports in its raw result, and return it."""
        used = reported_usage(result, self.prices)
        cost, tokens, model = used.cost, used.tokens, used.model
        if tokens or cost:
            self._spend(state, cost, tokens)
            if model is not None:
                add_to(self.by_model, model, cost, tokens)
        return used

    def absorb(self, state: str, child: ExecutionSpending, before: ExecutionSpending) -> CallUsage:
        """Count what an execution that *state* has started has spent since *before*, and return it.

        *before* is what of it was counted already.
        """
        cost = child.usage.cost - before.usage.cost
        tokens = child.usage.tokens - before.usage.tokens
        if tokens or cost:
            self._spend(state, cost, tokens)
            for model, (part, count) in child.by_model.items():
                before_part, before_count = before.by_model.get(model, (ZERO, 0))
                add_to(self.by_model, model, part - before_part, count - before_count)
        return CallUsage(cost, tokens, 0, 0, None, False)

    @property
    def charged(self) -> Decimal:
        """What it counts as having spent, with what was assumed of calls that broke off."""
        cost = self.usage.cost
        return cost if self.ledger is None else cost + self.ledger.assumed["MaxCost"]

    @property
    def spent(self) -> ExecutionSpending:
        """What it has spent so far."""
        assumed = UNSPENT.assumed if self.ledger is None else self.ledger.assumed
        return ExecutionSpending(self.usage, self.by_model, assumed)

    def _spend(self, state: str, cost: Decimal, tokens: int) -> None:
        spent, used, most = self.usage
        self.usage = UsageTotals(spent + cost, used + tokens, most)
        add_to(self.by_state, state, cost, tokens)


def execution_id(workflow_id: str, name: str, express: bool) -> str:
    """Return the id of an execution, in the form of AWS's."""
    prefix, _, workflow = workflow_id.rpartition(":stateMachine:")
    if express:
        return f"{prefix}:express:{workflow}:{name}:{name}"
    return f"{prefix}:execution:{workflow}:{name}"
