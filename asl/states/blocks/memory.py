"""Memory: data that states store across executions (Specification 8.7)."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from asl.core.diagnostics import Finding
from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import Missing
from asl.core.values import Json, compact
from asl.expr.frame import ExpressionFrame as ExpressionFrame
from asl.expr.paths import Path, parse_reference_path
from asl.expr.result_path import insert_at
from asl.expr.templates import SUFFIX
from asl.program import Finish
from asl.states.base import Compiler, Node
from asl.states.blocks import compile_inserts
from asl.states.blocks.base import Attempt, Block, Perform, compile_settings, compile_settings_of
from asl.states.effects import ServiceCall, StateFrame
from asl.states.settings import BlockSettings

__all__ = [
    "INSERTIONS",
    "MEMORY",
    "MemoryAccess",
    "Read",
    "Write",
    "compile_read",
    "compile_write",
    "read_memory",
    "use_memory",
]

DEFAULT_PATH: Final = parse_reference_path("$._memory")
"""The default path of a memory."""
INSERTIONS: Final = (("Memory", "Namespace"), ("Memory", "Read", "Namespace"))
"""The places of texts of a Memory in which braces insert values."""

Read: TypeAlias = Callable[[Json, StateFrame], Awaitable[tuple[Json, Path, Json]]]
"""`(effective input, frame) -> (effective input with the memory, its place, the memory)`."""
Write: TypeAlias = Callable[[Json, Json, Json, StateFrame], Awaitable[None]]
"""`(effective input, raw input, raw result, frame)`: writes after success."""


class MemoryAccess(NamedTuple):
    """The access of an agent to the memory during its call."""

    namespace: str | None
    """The accessible namespace; None for that of the document."""
    reads: bool
    writes: bool


def read_memory(compiler: Compiler, inner: Perform) -> Perform:
    """Compile the read of a Task, which precedes its other fields (step 3 of 3.1)."""
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
    """Compile the write of a Task after success, and the access of its agent.

    The agent may do the same as the block: read, write or both; both also if the block has neither.
    """
    write = compile_write(compiler, compile_inserts(compiler))
    reads = "Read" in compiler.compiler_at("Memory").state
    space_of = _place(compiler)
    rights = reads or write is None, write is not None or not reads

    async def perform(attempt: Attempt) -> Json:
        attempt.set_call_attribute(
            "memory", MemoryAccess(space_of(attempt.data, attempt.frame), *rights)
        )
        result = await inner(attempt)
        if write is not None:
            await write(attempt.data, attempt.raw, result, attempt.frame)
        return result

    return perform


def _place(compiler: Compiler) -> Callable[[Json, ExpressionFrame], str | None]:
    """Compile `Namespace` (None for that of the document), and check `Type`."""
    block = compiler.compiler_at("Memory")
    read, namespace = block.state.get("Read"), block.text("Namespace")
    kind, kinds = (
        compile_settings(compiler, "Memory", ("Type",)),
        TYPES if read is None else (_form(read),),
    )

    def place(data: Json, frame: ExpressionFrame) -> str | None:
        kind(data, frame).choice("Type", kinds)
        if namespace is None:
            return None
        found = {"Namespace": namespace(data, frame)}
        return BlockSettings(found, compiler.jsonata, "Memory.", compiler.name).name("Namespace")

    return place


# --------------------------------------------------------------------------------------------
# Reading


def compile_read(compiler: Compiler) -> Read | None:
    """Compile `Read`; None without it."""
    block = compiler.compiler_at("Memory")
    written = block.state.get("Read")
    if written is None:
        return None
    space_of = _place(compiler)
    if type(written) is list:
        ask, goes_to = _listed(compiler), None
    else:
        ask = _asked(compiler, _form(written))
        goes_to = compile_settings(compiler, "Memory.Read", ("InjectAt",))

    async def read(data: Json, frame: StateFrame) -> tuple[Json, Path, Json]:
        space, path = space_of(data, frame), DEFAULT_PATH
        if goes_to is not None:
            path = goes_to(data, frame).path("InjectAt") or path
        value, keys = await ask(space, data, frame)
        frame.note("MemoryRead", {"keys": keys})
        return insert_at(data, path.segments, value), path, value

    return read


FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "key_value": ("Keys", "Default"),
    "semantic": ("Query", "Collection", "TopK", "MinScore"),
    "episodic": ("Collection", "Filter", "Limit", "Order"),
}
"""The fields of `Read` by type of memory, except `InjectAt`."""
TYPES: Final = tuple(FORMS)


def _form(read: Json) -> str:
    """Return the type of memory of a `Read`."""
    if type(read) is list:
        return "key_value"
    names = {name.removesuffix(SUFFIX) for name in read}
    return "key_value" if "Keys" in names else "semantic" if "Query" in names else "episodic"


_Ask: TypeAlias = Callable[[str | None, Json, StateFrame], Awaitable[tuple[Json, list[str]]]]
"""`(namespace, effective input, frame) -> (memory, found keys)`."""


def _asked(compiler: Compiler, form: str) -> _Ask:
    """Compile the object form of `Read`."""
    if form == "key_value":
        return _keys(compiler)
    names = tuple(name for name in FORMS[form] if name != "Filter")
    fields = compile_settings(compiler, "Memory.Read", names)
    filter = compiler.compiler_at("Memory", "Read").template("Filter")

    async def ask(namespace: str | None, data: Json, frame: StateFrame) -> tuple[Json, list[str]]:
        found = fields(data, frame)
        request: dict[str, Json] = {"namespace": found.name("Collection") or namespace}
        if form == "semantic":
            request |= {"do": "search", "query": _query(found), "limit": found.count("TopK") or 5}
            request["least"] = found.amount("MinScore") or 0
        else:
            request |= {"do": "recent", "limit": found.count("Limit") or 10}
            request["order"] = found.choice("Order", ("asc", "desc")) or "desc"
            request["filter"] = {} if filter is None else filter(data, frame)
        entries = await frame.effects.call(frame, ServiceCall("memory", request))
        return entries, [entry["key"] for entry in entries]

    return ask


def _query(found: BlockSettings) -> str:
    query = found.values.get("Query")
    if query is None:
        raise found.invalid_value("Query", "a query")
    return query if type(query) is str else compact(query)


def _listed(compiler: Compiler) -> _Ask:
    """Compile the list form of `Read`; missing values are null."""
    fields = compile_settings(compiler, "Memory", ("Read",))

    async def ask(namespace: str | None, data: Json, frame: StateFrame) -> tuple[Json, list[str]]:
        keys = _names(fields(data, frame), "Read")
        found = await _found(namespace, keys, frame)
        return {key: found.get(key) for key in keys}, [key for key in keys if key in found]

    return ask


def _keys(compiler: Compiler) -> _Ask:
    """Compile a read by `Keys`."""
    fields = compile_settings(compiler, "Memory.Read", ("Keys",))
    block = compiler.compiler_at("Memory", "Read")
    default = block.template("Default") or block.scalar("Default")

    async def ask(namespace: str | None, data: Json, frame: StateFrame) -> tuple[Json, list[str]]:
        keys = _names(fields(data, frame), "Keys")
        found = await _found(namespace, keys, frame)
        present = [key for key in keys if key in found]
        if default is None:
            for key in keys:
                if key not in found:
                    cause = (
                        f"state '{compiler.name}': nothing is stored under {key!r}, "
                        "and there is no Default"
                    )
                    raise StateError("States.MemoryKeyNotFound", cause)
            return found, present
        value = default(data, frame)
        if type(value) is dict:
            return {**value, **found}, present
        return {key: found.get(key, value) for key in keys}, present

    return ask


def _names(found: BlockSettings, field: str) -> list[str]:
    keys = found.values[field]
    if type(keys) is not list or not all(type(key) is str and key for key in keys):
        raise found.invalid_value(field, "a list of texts that are not empty")
    return keys


async def _found(namespace: str | None, keys: list[str], frame: StateFrame) -> dict[str, Json]:
    request: Json = {"do": "read", "namespace": namespace, "keys": [*keys]}
    found: dict[str, Json] = await frame.effects.call(frame, ServiceCall("memory", request))
    return found


# --------------------------------------------------------------------------------------------
# Writing


def compile_write(compiler: Compiler, inserts: tuple[Finish, ...] = ()) -> Write | None:
    """Compile `Write`; None without it. *inserts* are the insertions of blocks into the output."""
    written = compiler.compiler_at("Memory").state.get("Write")
    if written is None:
        return None
    if type(written) is list:
        entries = [_Entry(compiler, index) for index in range(len(written))]
    else:
        entries = [_Entry(compiler)]
    space_of = _place(compiler)
    select = None if compiler.jsonata else compiler.template("ResultSelector")
    finish, placed = compiler.finish(inserts=inserts), compiler.placement(inserts)

    async def write(data: Json, raw: Json, result: Json, frame: StateFrame) -> None:
        space = space_of(data, frame)
        _try(finish, raw, result, frame)
        chosen = result if select is None else select(result, frame)
        if compiler.jsonata:
            documents: tuple[Json, ...] = ({"input": data, "result": result},)
        else:
            output = result if placed is None else placed(raw, result, frame)
            documents = chosen, output, data
        requests = [entry.request(space, documents, chosen, frame) for entry in entries]
        for request in requests:
            await frame.effects.call(frame, ServiceCall("memory", request))
        frame.note("MemoryWritten", {"keys": [request["key"] for request in requests]})

    return write


def _try(finish: Finish | None, raw: Json, result: Json, frame: ExpressionFrame) -> None:
    """Evaluate the output for its errors only, before the write; assign nothing."""
    before = frame.variables
    try:
        if finish is not None:
            finish(raw, result, frame)
    finally:
        frame.variables = before


class _Entry:
    """One entry of `Write`; *index* is its place in a list."""

    def __init__(self, compiler: Compiler, *index: int) -> None:
        block = compiler.compiler_at("Memory", "Write", *index).compiler_after()
        self.value = block.template("Value") or block.scalar("Value")
        self.sought = block.template("Value", Missing.PARAMETER) or block.scalar(
            "Value", Missing.PARAMETER
        )
        """The same, but with an error for an absent path in every profile."""
        prefix = "".join(("Memory.Write", *(f"[{each}]" for each in index), "."))
        self.fields = compile_settings_of(block, ("Key", "TTL", "Merge", "Overwrite"), prefix)

    def request(
        self, namespace: Json, documents: tuple[Json, ...], result: Json, frame: StateFrame
    ) -> dict[str, Json]:
        """Return the request of the write.

        Args:
            namespace: The namespace.
            documents: The sources of the value, in order: result, output and effective input; the
                last one is the source of all other fields. In JSONata, `$states` alone.
            result: The default value.
            frame: The frame of the machine.

        Raises:
            StateError: A field has a wrong value.
        """
        found = self.fields(documents[-1], frame)
        key = found.values["Key"]
        if key is None or key == "":
            raise found.invalid_value("Key", "a text that is not empty")
        request: dict[str, Json] = {
            "do": "write",
            "namespace": namespace,
            "key": key if type(key) is str else compact(key),
            "value": result if self.value is None else self._found(documents, frame),
            "merge": found.flag("Merge"),
            "overwrite": found.flag("Overwrite", absent=True),
        }
        lifetime = found.lifetime("TTL")
        return request if lifetime is None else {**request, "ttl": lifetime}

    def _found(self, documents: tuple[Json, ...], frame: StateFrame) -> Json:
        """Evaluate the value in the first document with its paths."""
        assert self.value is not None
        assert self.sought is not None
        for document in documents[:-1]:
            with suppress(StateError):
                return self.sought(document, frame)
        return self.value(documents[-1], frame)


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Memory"]
    read = block.get("Read")
    if type(read) in (dict, list):
        yield from _check_read(read, block.get("Type"), node)
    writes = block.get("Write")
    for index, entry in enumerate(writes if type(writes) is list else [writes]):
        if type(entry) is dict and "Value" in entry and "Value.$" in entry:
            steps = ("Memory", "Write", *((index,) if type(writes) is list else ()), "Value.$")
            message = "both 'Value' and 'Value.$' are given"
            yield Finding("V-MEM-06", message, node.at(*steps), at_key=True)


def _check_read(read: Json, kind: Json, node: Node) -> Iterator[Finding]:
    form = _form(read)
    if kind in TYPES and kind != form:
        message = f"'Read' has the form of {form} memory, not of {kind}"
        yield Finding("V-MEM-01", message, node.at("Memory", "Read"), f'"Type": "{form}"')
    if type(read) is list:
        return
    names = {name.removesuffix(SUFFIX) for name in read}
    if form == "key_value" and "Default" not in names:
        message = "without 'Default' a missing key fails the state"
        yield Finding("V-MEM-05", message, node.at("Memory", "Read"), at_key=True)
    yield from _check_others(read, form, node)
    target = read.get("InjectAt")
    if type(target) is str and not node.is_computed(target):
        try:
            path = parse_reference_path(target)
        except ExpressionFault as fault:
            pointer = node.at("Memory", "Read", "InjectAt")
            yield Finding("V-MEM-03", fault.message, pointer, fault.hint)
        else:
            if path.root != "$" or not path.segments:
                message = f"'InjectAt' must be the path of a member, not {target!r}"
                place = node.at("Memory", "Read", "InjectAt")
                yield Finding("V-MEM-03", message, place, "a path such as $._memory")


def _check_others(read: Mapping[str, Json], form: str, node: Node) -> Iterator[Finding]:
    """Find fields of another form of `Read`."""
    others = {name for names in FORMS.values() for name in names}.difference(FORMS[form])
    for field in read:
        if field.removesuffix(SUFFIX) in others:
            message = f"{field!r} has no effect on a Read of {form} memory"
            hint = f"it takes {', '.join(FORMS[form])}"
            yield Finding("V-MEM-07", message, node.at("Memory", "Read", field), hint, at_key=True)


MEMORY = Block(
    "Memory",
    _check,
    lacks=("Connection", "Read.$", "Write.$", "Read/Filter.$"),
)
