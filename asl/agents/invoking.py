"""The integration `lambda:invoke`, served by the handlers of functions."""

from collections.abc import Callable
from typing import Any, Final

from asl.core.errors import StateError
from asl.core.values import Json, type_name
from asl.engine.agent import Agent, Call

__all__ = ["Invoke"]

ENVELOPE: Final[dict[str, Json]] = {"ExecutedVersion": "$LATEST", "StatusCode": 200}
"""What stands around the answer of a function, beside `Payload`."""


class Invoke(Agent):
    """Asks the function that a request names, and answers as the service Lambda does.

    *function* finds the handler of a function by its name or ARN, None for one nobody serves.
    """

    needs_loop = True

    def __init__(self, function: Callable[[str], Agent | None]) -> None:
        self.function = function

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Return the answer of the function in its envelope.

        Raises StateError("States.AgentNotFound") where nobody serves the function.
        """
        assert call is not None
        given = payload if isinstance(payload, dict) else {}
        name = given.get("FunctionName")
        agent = self.function(name) if isinstance(name, str) else None
        if agent is None:
            shown = repr(name) if isinstance(name, str) else type_name(name)
            raise StateError(
                "States.AgentNotFound",
                f"state '{call.target.state}': no handler for the function {shown} is registered",
            )
        host: Any = call.at.host
        return {**ENVELOPE, "Payload": await host.reach(agent, given.get("Payload", {}), call)}
