"""An execution of a program: its identity, spending and flat history."""

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
from asl.engine.live_map_run import MapRunMonitor
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
from asl.states.blocks.tool_policy import ToolRules
from asl.states.effects import Record

__all__ = ["ARN", "DEFAULT_IDENTITY", "ROLE", "Execution", "Identity", "execution_id"]

REGION = "us-east-1"
ARN = f"arn:aws:states:{REGION}:111111111111"
"""Form of ids, as in AWS, so that documents which parse them work unchanged."""
ROLE = "arn:aws:iam::111111111111:role/local"


class EventChannels(Protocol):
    """The channels to which a document sends events."""

    def open(self, place: tuple[str | int, ...], block: Callable[[str], Json]) -> None:
        """Open the channels of an included document.

        Args:
            place: Path of the Include state.
            block: Returns a block of the document by its name.

        Raises:
            StateError: A channel cannot be opened.
        """
        ...


class Identity(NamedTuple):
    """Identity of an execution, apart from its workflow and its input."""

    name: str | None = None
    """Name; None to draw one on first use."""
    workflow_id: str | None = None
    """Id by which the workflow was started; None for the one derived from its name."""
    express: bool = False
    asynchronous: bool = False
    """Whether an express execution was started without waiting for its end."""
    requestor: str | None = None
    """Who started it."""
    started: float | None = None
    """Start in epoch seconds, None for now."""
    limit: float | None = None
    """Time limit set by its starter in seconds, in addition to its own."""
    redrives: int = 0
    """Number of redrives, and of resumptions from a checkpoint."""
    redriven: float | None = None
    """Time of the latest redrive in epoch seconds."""
    rights: tuple[Any, ...] = ()
    """Tool policies of the enclosing executions, outermost first."""
    role: str | None = ROLE
    """Role ARN in the context object, None for no role."""


DEFAULT_IDENTITY = Identity()
"""Identity of a new execution without any options."""


MANY_ITEMS: Final = "let a distributed Map read them, or raise the bound: --quota max_items=N"
FAIR: Final = 200_000
"""Steps of work after which an execution yields to others: about 0.05 seconds."""


class Execution:
    """An execution of a program; shared by all of its machines.

    `started` is in epoch seconds, `deadline` the epoch second at which it times out. Usage is
    counted here (`usage`, `by_state`, `by_model`), even for states that fail.
    """

    # Attributes of every execution are slots, optional ones are in the dictionary; there is no
    # `__init__`, which would double the cost of creating one.
    __slots__ = (
        "__dict__",
        "counter",
        "draw_name",
        "emit",
        "history",
        "identity",
        "input",
        "ledger",
        "program",
        "started",
        "usage",
        "work",
        "work_since_yield",
    )
    program: Program
    input: Json
    started: float
    history: list[Any]
    emit: Callable[[Record], object]
    """Record one history record."""
    identity: Identity
    draw_name: Callable[[], str]
    """Draws a name if the identity has none."""
    usage: UsageTotals
    ledger: Ledger | None
    """Ledger of its budget; None without limits."""
    counter: HistoryCounter | None
    """Counter of history events; None without a quota."""
    work: WorkMeter | None
    """Meter of the work of the current state, None before the first evaluation."""
    work_since_yield: int
    """Steps of work since it last yielded to others."""

    index = 0
    """Index of a child execution in its Map."""
    read_earlier_records: Callable[[list[Any]], list[Any]] | None = None
    """Reads the records from before this process, which precede the flat history."""
    listener: Any = None
    """Receives its events; its method `within`, if any, returns the listener of an execution that a
    state starts."""
    delivery: EventChannels | None = None
    """Delivers events to the channels of the document, None without channels."""
    items = 0
    """Number of items of its Maps so far."""
    has_history = True
    """Whether there is a history, so that a cause can refer to its events."""
    context: Mapping[str, Json] | None = None
    """Context object supplied by the caller, None for the generated one."""
    prices: Mapping[str, Price] = MappingProxyType({})
    map_runs: MapRunMonitor | None = None
    """Follows its Map Runs; None without a monitor."""
    child_records: Callable[[Record], object] | None = None
    """Receives the records of child executions, if they have to be stored."""
    default_tools: ToolRules | None = None
    """Computed `DefaultTools` of the document, from the first use on."""

    def init(
        self,
        program: Program,
        data: Json,
        started: float,
        history: list[Any],
        identity: Identity = DEFAULT_IDENTITY,
        draw: Callable[[], str] = str,
    ) -> Self:
        """Set the attributes of every execution and return it."""
        self.program = program
        self.input = data
        self.started = started
        self.history = history
        self.identity = identity
        self.draw_name = draw
        self.usage = NO_USAGE
        self.ledger = self.counter = self.work = None
        self.work_since_yield = 0
        return self

    @property
    def outermost(self) -> "Execution":
        """The execution whose history contains the events of this one."""
        return self

    def meter(self) -> WorkMeter:
        """Return the meter of its work, which exists from the first evaluation on."""
        if self.work is None:
            self.work = WorkMeter()
        return self.work

    def count_received(self, size: int) -> None:
        """Count the bytes of a value from outside as work and as memory."""
        self.meter().built += size
        self.outermost.work_since_yield += size // STEP_BYTES

    def count_work(self) -> bool:
        """Count the work of the evaluations of a state and reset its meter.

        Returns:
            Whether the execution should yield to others now.
        """
        if self.work is not None:
            self.work_since_yield += self.work.renew()
        return self.work_since_yield >= FAIR

    def count_items(self, count: int) -> None:
        """Count items of a Map.

        Raises:
            StateError: States.Runtime; there are too many.
        """
        self.items += count
        most = self.program.profile.max_items
        if self.items > most:
            cause = f"the Map states of the execution have more than {most} items: {MANY_ITEMS}"
            raise StateError("States.Runtime", cause)

    def complete(self, flat: list[Any]) -> None:
        """Insert the records from before this process into a flat history, once."""
        if self.read_earlier_records is not None:
            earlier, self.read_earlier_records = self.read_earlier_records, None
            flat[:0] = earlier(flat)

    @property
    def name(self) -> str:
        """Name of the execution."""
        if self.identity.name is None:
            # Plain agents read the name in threads, maybe concurrently: all get the first name.
            name = vars(self).setdefault("drawn", self.draw_name())
            self.identity = self.identity._replace(name=name)
        return self.identity.name or ""

    @property
    def id(self) -> str:
        """Id of the execution, in AWS's form."""
        return execution_id(self.workflow_id, self.name, self.express)

    @property
    def workflow_id(self) -> str:
        """Id of the workflow, in AWS's form."""
        return self.identity.workflow_id or f"{ARN}:stateMachine:{self.program.name}"

    @property
    def workflow(self) -> str:
        """Name of the workflow, as in ids."""
        return self.workflow_id.rpartition(":stateMachine:")[2]

    @property
    def home(self) -> str:
        """Prefix of the ids: partition, region and account."""
        return self.workflow_id.rpartition(":stateMachine:")[0]

    @property
    def counts_redrives(self) -> bool:
        """Whether expressions see the number of redrives; false for synchronous express executions
        (AWS).
        """
        return self.identity.asynchronous or not self.identity.express

    @property
    def express(self) -> bool:
        """Whether it is an express execution."""
        return self.identity.express

    @property
    def role(self) -> str | None:
        """Role ARN in the context object."""
        return self.identity.role

    @property
    def requestor(self) -> str | None:
        """Who started it."""
        return self.identity.requestor

    @property
    def rights(self) -> tuple[Any, ...]:
        """Tool policies of the enclosing executions, outermost first."""
        return self.identity.rights

    @property
    def redrives(self) -> int:
        """Number of redrives."""
        return self.identity.redrives

    @property
    def redriven(self) -> float | None:
        """Time of the latest redrive in epoch seconds."""
        return self.identity.redriven

    def with_redrives(self, redrives: int, redriven: float | None) -> "Execution":
        """Return this execution as expressions saw it after that number of redrives."""
        if self.redrives == redrives:
            return self
        earlier = copy(self)
        earlier.identity = self.identity._replace(
            name=self.name, redrives=redrives, redriven=redriven
        )
        return earlier

    @property
    def deadline(self) -> float | None:
        """Epoch second at which it times out, None for never; a redrive restarts the time limit."""
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
        """Hash of the document."""
        return definition_hash(self.program.document)

    @cached_property
    def by_state(self) -> dict[str, tuple[Decimal, int]]:
        """Cost and tokens by name of the state."""
        return {}

    @cached_property
    def by_model(self) -> dict[str, tuple[Decimal, int]]:
        """Cost and tokens by the model that the agent reported."""
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
        """Count the spending of an execution that a state has started, and return it.

        Args:
            state: Name of the state.
            child: Spending of the started execution.
            before: The part that is already counted.
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
    def charged_cost(self) -> Decimal:
        """Cost of the execution including amounts assumed for interrupted calls."""
        cost = self.usage.cost
        return cost if self.ledger is None else cost + self.ledger.assumed["MaxCost"]

    @property
    def spent(self) -> ExecutionSpending:
        """Return its spending so far."""
        assumed = UNSPENT.assumed if self.ledger is None else self.ledger.assumed
        return ExecutionSpending(self.usage, self.by_model, assumed)

    def _spend(self, state: str, cost: Decimal, tokens: int) -> None:
        spent, used, most = self.usage
        self.usage = UsageTotals(spent + cost, used + tokens, most)
        add_to(self.by_state, state, cost, tokens)


def execution_id(workflow_id: str, name: str, express: bool) -> str:
    """Return the id of an execution, in AWS's form."""
    prefix, _, workflow = workflow_id.rpartition(":stateMachine:")
    if express:
        return f"{prefix}:express:{workflow}:{name}:{name}"
    return f"{prefix}:execution:{workflow}:{name}"
