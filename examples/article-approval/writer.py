"""A writer in place of a model: it answers word by word, as a model does."""

import asyncio


async def write(parameters, call):
    """Write one sentence and report each word."""
    topic = parameters["prompt"].removeprefix("Write one sentence about ").rstrip(".")
    text = f"Dear reader, this is about {topic}."
    for word in text.split():
        call.report_chunk(f"{word} ")
        await asyncio.sleep(0.1)
    return {"response": text}
