"""Memory: what states remember from one execution to the next (Specification 8.7)."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import Missing
from asl.core.values import Json, compact, is_integer, is_number
from asl.expr.frame import Evaluate
from asl.expr.frame import Frame as ExpressionFrame
from asl.expr.paths import Path, parse_reference_path
from asl.expr.references import place
from asl.expr.templates import SUFFIX
from asl.expr.times import parse_duration
from asl.program import Finish
from asl.states.base import Compiler, Node
from asl.states.blocks.base import Attempt, Block, Perform, given, settings
from asl.states.host import Frame

__all__ = [
    "MEMORY",
    "Read",
    "Rights",
    "Write",
    "compile_read",
    "compile_write",
    "read_memory",
    "use_memory",
]

DEFAULT_PATH: Final = parse_reference_path("$._memory")
"""Where a memory goes of which nothing is said."""
SEARCH: Final = {"TopK": 5, "MinScore": 0}
RECENT: Final = {"Limit": 10, "Order": "desc"}

Read: TypeAlias = Callable[[Json, Frame], Awaitable[tuple[Json, Path, Json]]]
"""`(effective input, frame) -> (effective input with the memory, its place, the memory)`."""
Write: TypeAlias = Callable[[Json, Json, Json, Frame], Awaitable[None]]
"""`(effective input, raw input, raw result, frame)`: writes after success."""


class Rights(NamedTuple):
    """What an agent may do with the memory during its call."""

    namespace: str | None
    """Where it may do it; None: in the namespace of the document."""
    reads: bool
    writes: bool


def read_memory(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what a Task reads before any of its fields is computed (step 3 of 3.1)."""
    read = compile_read(compiler)
    if read is None:
        return inner
    reading = read

    async def perform(attempt: Attempt) -> Json:
        attempt.data, path, value = await reading(attempt.data, attempt.frame)
        attempt.injected = path, value
        return await inner(attempt)

    return perform


def use_memory(compiler: Compiler, inner: Perform) -> Perform:
    """Compile what a Task writes after success, and what its agent may do meanwhile.

    That is the same as the block does, and both where the block does neither.
    """
    reads, write = "Read" in compiler.within("Memory").state, compile_write(compiler)
    namespace = compiler.within("Memory").text("Namespace")
    rights = reads or write is None, write is not None or not reads

    async def perform(attempt: Attempt) -> Json:
        space = None if namespace is None else str(namespace(attempt.data, attempt.frame))
        attempt.tell("memory", Rights(space, *rights))
        result = await inner(attempt)
        if write is not None:
            await write(attempt.data, attempt.raw, result, attempt.frame)
        return result

    return perform


# --------------------------------------------------------------------------------------------
# Reading


def compile_read(compiler: Compiler) -> Read | None:
    """Compile `Read`; None without it."""
    block = compiler.within("Memory")
    written = block.state.get("Read")
    if written is None:
        return None
    namespace, state = block.text("Namespace"), compiler.name
    kind, form = settings(compiler, "Memory", ("Type",)), "key_value"
    if type(written) is list:
        ask, goes_to = _keys(lambda data, frame: written, None, state), None
    else:
        ask, form = _asked(block.within("Read"), state), _form(written)
        goes_to = settings(compiler, "Memory.Read", ("InjectAt",))

    async def read(data: Json, frame: Frame) -> tuple[Json, Path, Json]:
        path = DEFAULT_PATH
        if goes_to is not None:
            kind(data, frame).word("Type", (form,))
            path = goes_to(data, frame).way("InjectAt") or path
        space = None if namespace is None else namespace(data, frame)
        value, keys = await ask(space, data, frame)
        frame.note("MemoryRead", {"keys": keys})
        return place(data, path.segments, value), path, value

    return read


KINDS: Final = {"Keys": "key_value", "Query": "semantic"}
"""The types of memory by the field that only their form of `Read` has; else it is episodic."""


def _form(read: Mapping[str, Json]) -> str:
    """Return the type of memory that a form of `Read` is for."""
    names = {name.removesuffix(SUFFIX) for name in read}
    return next((kind for name, kind in KINDS.items() if name in names), "episodic")


_Ask: TypeAlias = Callable[[Json, Json, Frame], Awaitable[tuple[Json, list[str]]]]
"""`(namespace, effective input, frame) -> (memory, keys that were found)`."""


def _asked(block: Compiler, state: str) -> _Ask:
    """Compile the object form of `Read`."""
    keys = block.scalar("Keys")
    if keys is not None:
        default = block.template("Default") or block.scalar("Default")
        return _keys(keys, (default,), state)
    query = block.scalar("Query")
    collection = block.scalar("Collection")
    if query is not None:
        fields = given(block, tuple(SEARCH))
        filter = None
    else:
        fields, filter = given(block, tuple(RECENT)), block.template("Filter")

    async def ask(namespace: Json, data: Json, frame: Frame) -> tuple[Json, list[str]]:
        space = namespace if collection is None else str(collection(data, frame))
        request: dict[str, Json] = {"namespace": space}
        found = fields(data, frame)
        if query is not None:
            text = query(data, frame)
            found = SEARCH | found
            request |= {"do": "search", "query": text if type(text) is str else compact(text)}
            request |= {"limit": found["TopK"], "least": found["MinScore"]}
        else:
            found = RECENT | found
            request |= {"do": "recent", "limit": found["Limit"], "order": found["Order"]}
            request["filter"] = {} if filter is None else filter(data, frame)
        _check_request(request, state)
        entries = await frame.host.serve(frame, "memory", request)
        return entries, [entry["key"] for entry in entries]

    return ask


def _check_request(request: Mapping[str, Json], state: str) -> None:
    """Raise StateError for computed bounds that are none."""
    limit, least = request["limit"], request.get("least", 0)
    fits = is_integer(limit) and limit >= 1 and is_number(least)
    if not fits or request.get("order", "asc") not in ("asc", "desc"):
        raise StateError("States.Runtime", f"state '{state}': Memory.Read has no such bounds")


def _keys(keys: Evaluate, default: tuple[Evaluate | None] | None, state: str) -> _Ask:
    """Compile a read by keys; in the list form, without *default*, what is missing is null."""

    async def ask(namespace: Json, data: Json, frame: Frame) -> tuple[Json, list[str]]:
        wanted = keys(data, frame)
        if type(wanted) is not list or not all(type(key) is str and key for key in wanted):
            raise StateError("States.Runtime", f"state '{state}': Memory.Read.Keys is no list")
        request = {"do": "read", "namespace": namespace, "keys": wanted}
        found = await frame.host.serve(frame, "memory", request)
        present = [key for key in wanted if key in found]
        if default is None:
            return {key: found.get(key) for key in wanted}, present
        (fallback,) = default
        if fallback is None:
            for key in wanted:
                if key not in found:
                    cause = (
                        f"state '{state}': nothing is stored under {key!r}, and there is no Default"
                    )
                    raise StateError("States.MemoryKeyNotFound", cause)
            return found, present
        value = fallback(data, frame)
        if type(value) is dict:
            return {**value, **found}, present
        return {key: found.get(key, value) for key in wanted}, present

    return ask


# --------------------------------------------------------------------------------------------
# Writing


def compile_write(compiler: Compiler) -> Write | None:
    """Compile `Write`; None without it."""
    block = compiler.within("Memory")
    written = block.state.get("Write")
    if written is None:
        return None
    several = type(written) is list
    entries = [
        _Entry(block.within("Write", index) if several else block.within("Write"), compiler.name)
        for index in range(len(written) if several else 1)
    ]
    namespace = block.text("Namespace")
    select = None if compiler.jsonata else compiler.template("ResultSelector")
    finish = compiler.finish()

    async def write(data: Json, raw: Json, result: Json, frame: Frame) -> None:
        space = None if namespace is None else namespace(data, frame)
        output = _output(finish, raw, result, frame)
        chosen = result if select is None else select(result, frame)
        if compiler.jsonata:
            documents: tuple[Json, ...] = ({"input": data, "result": result},)
        else:
            documents = chosen, output, data
        requests = [entry.request(space, documents, chosen, frame) for entry in entries]
        for request in requests:
            await frame.host.serve(frame, "memory", request)
        frame.note("MemoryWritten", {"keys": [request["key"] for request in requests]})

    return write


def _output(finish: Finish | None, raw: Json, result: Json, frame: ExpressionFrame) -> Json:
    """Return what the output will be, or raise what it will raise; nothing is assigned."""
    if finish is None:
        return result
    before = frame.variables
    try:
        return finish(raw, result, frame)
    finally:
        frame.variables = before


class _Entry:
    """One entry of `Write`."""

    def __init__(self, written: Compiler, state: str) -> None:
        self.state, block = state, written.after()
        key = block.scalar("Key")
        assert key is not None
        self.key = key
        self.value = block.template("Value") or block.scalar("Value")
        self.sought = block.template("Value", Missing.PARAMETER) or block.scalar(
            "Value", Missing.PARAMETER
        )
        """The same, but it fails where a path leads nowhere, in every profile."""
        self.fields = given(block, ("TTL", "Merge", "Overwrite"))

    def request(
        self, namespace: Json, documents: tuple[Json, ...], result: Json, frame: Frame
    ) -> dict[str, Json]:
        """Return what is written.

        *documents* are those in which a value is looked for: result, output and effective input,
        by which everything else is computed. In JSONata there is `$states` alone.
        """
        data = documents[-1]
        key, found = self.key(data, frame), self.fields(data, frame)
        request: dict[str, Json] = {
            "do": "write",
            "namespace": namespace,
            "key": key if type(key) is str else compact(key),
            "value": result if self.value is None else self._found(documents, frame),
            "merge": found.get("Merge", False) is True,
            "overwrite": found.get("Overwrite", True) is True,
        }
        if "TTL" in found:
            self._check_ttl(found["TTL"])
            request["ttl"] = found["TTL"]
        return request

    def _found(self, documents: tuple[Json, ...], frame: Frame) -> Json:
        """Evaluate the value in the first document that has what it reads."""
        assert self.value is not None
        assert self.sought is not None
        for document in documents[:-1]:
            with suppress(StateError):
                return self.sought(document, frame)
        return self.value(documents[-1], frame)

    def _check_ttl(self, ttl: Json) -> None:
        try:
            parse_duration(ttl, allow_never=True)
        except ExpressionFault as fault:
            cause = f"state '{self.state}': Memory.Write.TTL: {fault}"
            raise StateError("States.InvalidTTL", cause) from None


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Memory"]
    if node.value.get("Type") not in ("Task", "Pass"):
        message = f"a {node.value.get('Type')} state has no memory"
        yield Finding("V-MEM-04", message, node.at("Memory"), at_key=True)
        return
    read = block.get("Read")
    if type(read) is dict:
        yield from _check_read(read, block.get("Type"), node)
    writes = block.get("Write")
    for index, entry in enumerate(writes if type(writes) is list else [writes]):
        if type(entry) is dict and "Value" in entry and "Value.$" in entry:
            steps = ("Memory", "Write", *((index,) if type(writes) is list else ()), "Value.$")
            message = "both 'Value' and 'Value.$' are given"
            yield Finding("V-MEM-06", message, node.at(*steps), at_key=True)


def _check_read(read: Mapping[str, Json], kind: Json, node: Node) -> Iterator[Finding]:
    names, form = {name.removesuffix(".$") for name in read}, _form(read)
    if type(kind) is str and kind != form and not node.computed(kind):
        message = f"such a Read is for {form} memory, not for {kind}"
        yield Finding("V-MEM-01", message, node.at("Memory", "Read"), f'"Type": "{form}"')
    if form == "key_value" and "Default" not in names:
        message = "a key that is not stored yet fails, as there is no Default"
        yield Finding("V-MEM-05", message, node.at("Memory", "Read"), at_key=True)
    target = read.get("InjectAt")
    if type(target) is str and not node.computed(target):
        try:
            path = parse_reference_path(target)
        except ExpressionFault as fault:
            pointer = node.at("Memory", "Read", "InjectAt")
            yield Finding("V-MEM-03", fault.message, pointer, fault.hint)
        else:
            if path.root != "$" or not path.segments:
                message = f"the memory goes to a member of the input, not to {target!r}"
                place = node.at("Memory", "Read", "InjectAt")
                yield Finding("V-MEM-03", message, place, "a path such as $._memory")


MEMORY = Block(
    "Memory",
    _check,
    of_documents=True,
    lacks=("Connection", "Read.$", "Write.$", "Read/Filter.$"),
)
