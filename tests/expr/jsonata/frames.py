"""As much of a running machine as a query may read, and an evaluation in one line."""

from asl.core.values import Json
from asl.expr.frame import ExpressionFrame
from asl.expr.jsonata import parse

NOW = 1_700_000_000.123


class StillFrame:
    """A frame whose clock stands and whose chance is counted."""

    now = NOW

    def __init__(self) -> None:
        self.draws = 0

    def entropy(self) -> int:
        self.draws += 1
        return self.draws << 120 | 0x1234_5678_9ABC_DEF0


def still() -> ExpressionFrame:
    return StillFrame()  # type: ignore[return-value]


def evaluate(source: str, given: Json = None, **variables: Json) -> Json:
    """Evaluate with `$states.input` and the variables."""
    return parse(source)({"states": {"input": given}, **variables}, still())
