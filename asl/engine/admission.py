"""On what terms a call of an agent is made, or why it is not made (8.11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from asl.core.values import Json
from asl.engine.accounts import Account
from asl.engine.amounts import beyond
from asl.engine.execution import ZERO, Used
from asl.engine.frame import Frame
from asl.states.blocks.budget import Amounts, Fallback

if TYPE_CHECKING:
    from asl.engine.within import Within

__all__ = ["BROKEN", "LOST", "UNKNOWN", "UNUSED", "Admission", "Later", "Pause", "Terms"]

UNUSED: Final = Used(ZERO, 0, 0, 0, None)
LOST: Final = UNUSED._replace(fault="nothing")
"""What is known of a call that was given up before its end."""
BROKEN: Final = UNUSED._replace(fault="nothing, as a tool")
"""The same of the call of a tool."""

UNKNOWN: Final[Amounts] = {}
"""What is known of an agent that was never called."""


class Terms:
    """On what terms a call is admitted, and what it has used since."""

    model: str | None = None
    """The model to use instead of the preferred one."""
    instead: str | None = None
    """The agent to call instead."""
    reduced: bool = False
    """Whether lesser quality is asked for."""
    counted: Amounts = UNKNOWN
    """What it counts as in the account of the state itself, once it is settled."""
    assumed: Amounts = UNKNOWN
    """What of that is assumed, in any account."""
    sizes: Amounts = UNKNOWN
    """What its own use is bounded by beforehand."""
    within: Amounts = UNKNOWN
    """What is known of the calls within it; `known` has that in it."""
    inner: "Within | None" = None
    """What is set aside for those, once there is one."""
    inside: "Within | None" = None
    """The same of the call within which this one is made, while it is under way."""
    shares: "list[Amounts]"
    """What is set aside for this one there."""

    def __init__(self, frame: Frame, agent: str, accounts: list[Account], known: Amounts) -> None:
        self.frame = frame
        self.agent = agent
        self.accounts = accounts
        """From the widest to that of the state itself."""
        self.known = known
        """What is known of the call beforehand."""
        self.held: list[Amounts] = []
        """What is held in the first of the accounts."""
        self.entry = ""
        """Names the call where others see what it holds."""
        self.delay = 0.0
        """Seconds by which the call is delayed."""
        self.applied: Fallback | None = None
        self.used = UNUSED
        """What the agent has reported."""

    @property
    def rest(self) -> Amounts:
        """What is known beforehand of what it has still to use."""
        return self.known if self.inner is None else beyond(self.known, self.inner.used)

    def account(self, state: str, result: Mapping[str, Json]) -> Used:
        """Count what the agent reports for its state, and return it."""
        self.used = used = self.frame.account(state, result)
        return used


class Later:
    """A call has to wait for one of another execution, of which nobody here will hear."""


@dataclass(frozen=True, slots=True)
class Pause:
    """People have to decide before a call is made."""

    account: Account
    reason: str


Admission: TypeAlias = "Terms | Pause | type[Later] | None"
"""What a call is told: its terms, or why it is not made; None: others have to end before."""
