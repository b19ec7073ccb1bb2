"""What an assistant does: lists the tools, calls them, and passes on the answer of its user."""

import asyncio
import sys

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

SERVER = StdioServerParameters(
    command=sys.executable, args=["-m", "asl", "mcp", "flows", "--agents", "shop.agents.yaml"]
)


async def main():
    """Ask where an order is, and refund another one."""
    async with mcp.Client(stdio_client(SERVER)) as client:

        async def call(name, **arguments):
            content = (await client.call_tool(name, arguments)).structured_content
            print(name, arguments, "->", content.get("output") or content["status"])
            return content

        print("tools:", *sorted(tool.name for tool in (await client.list_tools()).tools))
        await call("order_status", order=17)
        await call("refund", order=17, reason="It is late.")
        paused = await call("refund", order=18, reason="It broke.")
        (request,) = paused["requests"]
        print("asks:", request["prompt"])
        await client.call_tool(
            "answer_request", {"request": request["requestId"], "approval": "refund"}
        )
        await call("execution_status", execution=paused["execution"], wait=True)


if __name__ == "__main__":
    asyncio.run(main())
