"""Tasks of a document that tools of the run answer, by the names that the document has for them."""

from asl.core.errors import StateError
from asl.core.values import Json
from asl.engine.agent import Agent, Call
from asl.engine.definitions import AgentDefinition
from asl.engine.tools import ToolOffer

__all__ = ["DocumentTool"]


class DocumentTool(Agent):
    """An agent of a document that calls tools of the run and returns their results."""

    needs_loop = True

    def __init__(self, definition: AgentDefinition) -> None:
        self.definition = definition

    async def answer(self, payload: Json, call: Call | None) -> Json:
        """Call the tools that the parameters ask for.

        Raises:
            RaisedError: The only tool fails. The failure of one of several is its result.
        """
        assert call is not None
        assert self.definition.tool_calls is not None
        calls = self.definition.tool_calls(payload)
        if self.definition.selects is None:
            ((name, arguments),) = calls
            result: Json = await call.tools.call(name, arguments)
            return result
        offers = await call.tools.select_tools(self.definition.selects)
        return [await _result(call, offers, name, arguments) for name, arguments in calls]


async def _result(call: Call, offers: list[ToolOffer], name: str, arguments: Json) -> Json:
    """Return the result of one of several tools, or what is wrong with it as a message."""
    names = (name, name.replace(".", "/", 1))
    offer = next((each for each in offers if not {each.name, *each.names}.isdisjoint(names)), None)
    if offer is None:
        return {"error": f"the tool {name} is not available"}
    try:
        result: Json = await call.tools.use(offer, arguments)
    except StateError as error:
        return {"error": str(error.cause or error.name)}
    return result
