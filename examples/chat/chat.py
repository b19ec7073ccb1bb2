"""The conversation in a terminal: `python chat.py NAME`."""

import sys

import asl
from asl.agents.file import load_bindings


def listen(request):
    """Show the last answer and return what the user writes."""
    print(request["promptText"])
    return input("> ").strip() or "bye"


bound = load_bindings("chat.agents.yaml")
result = asl.run(
    "chat.asl.json",
    {"user": sys.argv[1]},
    agents=bound.agents,
    memory=bound.memory,
    approvals=listen,
)
result.raise_for_status()
print("remembered:", *result.output)
