"""A server of the Model Context Protocol, made with its library: on standard streams, or HTTP."""

import logging
import sys

from mcp.server.mcpserver import Context, MCPServer

logging.disable()
server = MCPServer("things")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def broken() -> str:
    """Fails."""
    raise ValueError("cannot be")


@server.tool()
async def steps(context: Context) -> dict[str, str]:
    """Tells how far it is."""
    await context.report_progress(1, 4, "a quarter")
    return {"state": "done"}


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run(transport="stdio")
