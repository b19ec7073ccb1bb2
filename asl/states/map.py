"""Map: runs one machine for every item of an array (6.3)."""

from collections.abc import Callable, Iterator, Mapping

from asl.core import aws
from asl.core.diagnostics import Finding, Severity, Wording
from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.frame import Evaluate, constant
from asl.program import Machine, Step, Work
from asl.states.base import Compiler, Node, StateType
from asl.states.distributed import compile_distributed, is_distributed
from asl.states.host import ABSENT, Fan, Frame
from asl.states.iteration import compile_items, compile_tolerance, too_many_failed
from asl.states.numbers import number


def compile_map(compiler: Compiler, step: Step) -> None:
    """Compile a Map: the result is the array of the iterations' outputs, in item order."""
    processor = "ItemProcessor" if "ItemProcessor" in compiler.state else "Iterator"
    machine = compiler.machine(processor)
    distributed = is_distributed(compiler.state, processor)
    step.length = _length(compiler, distributed)
    compile_work = compile_distributed if distributed else _inline
    step.work = compile_work(compiler, machine)
    step.finish = compiler.finish()


def _length(compiler: Compiler, distributed: bool) -> Evaluate:
    """Compile how many items a Map begins with; none where they are yet to be read (recorded)."""
    if "ItemReader" in compiler.state:
        return constant(0)
    effective_input = compiler.input()
    items_of = compile_items(compiler, objects=distributed)
    return lambda data, frame: len(items_of(effective_input(data, frame), frame))


def _inline(compiler: Compiler, machine: Machine) -> Work:
    effective_input, items_of = compiler.input(), compile_items(compiler)
    selector = compiler.template("ItemSelector") or compiler.template("Parameters")
    # AWS takes a limit that is written as text, too (recorded).
    limit = number(compiler, "MaxConcurrency", 0, numerals=compiler.profile.aws)
    tolerance = compile_tolerance(compiler)

    async def work(data: Json, frame: Frame) -> Json:
        effective = effective_input(data, frame)
        items = items_of(effective, frame)
        fan = Fan(
            len(items),
            _children(frame, machine, items, selector, effective),
            0 if limit is None else int(limit(effective, frame)),
        )
        if tolerance is not None:
            fan.failed = _tolerating(tolerance(effective, frame)(len(items)))
        joined = await frame.host.fork(frame, fan)
        if not joined.failed:
            return joined.values
        return [value for value in joined.values if value is not ABSENT]

    return work


def _children(
    frame: Frame, machine: Machine, items: list[Json], selector: Evaluate | None, effective: Json
) -> Callable[[int], Frame]:
    if selector is None:
        return lambda index: frame.child(index, machine, items[index], items[index])

    def child(index: int) -> Frame:
        made = frame.child(index, machine, None, items[index])
        made.data = selector(effective, made.before_start())
        return made

    return child


def _tolerating(allowed: float) -> Callable[[Frame, StateError], StateError | None]:
    """Return what counts failed children and fails with too many of them."""
    failures = 0

    def failed(frame: Frame, error: StateError) -> StateError | None:
        nonlocal failures
        failures += 1
        return too_many_failed() if failures > allowed else None

    return failed


def check_map(node: Node) -> Iterator[Finding]:
    """One processor, one selector, one bound of each pair."""
    state = node.value
    yield from _check_processor(node)
    for one, other, rule in _PAIRS:
        if one in state and other in state:
            yield _exclusive(node, one, other, rule)
    if node.query_language == "JSONPath":
        yield from _check_advice(node)
    yield from _check_distributed(node)


def _check_advice(node: Node) -> Iterator[Finding]:
    if not node.value.keys() & {"ItemsPath", "ItemsPath.$", "ItemReader"}:
        yield Finding(
            "V-MAP-11",
            "without 'ItemsPath' the whole input is taken as the array of items",
            node.pointer,
            'write "ItemsPath": "$" if that is meant',
            at_key=True,
        )
    if "Parameters" in node.value:
        yield Finding(
            "V-MAP-13",
            "'Parameters' is the older name of 'ItemSelector'",
            node.at("Parameters"),
            at_key=True,
        )


_PAIRS = (
    ("ItemsPath", "Items", "V-MAP-03"),
    ("ItemSelector", "Parameters", "V-MAP-04"),
    ("MaxConcurrency", "MaxConcurrencyPath", "V-MAP-05"),
    ("ToleratedFailureCount", "ToleratedFailureCountPath", "V-MAP-05"),
    ("ToleratedFailurePercentage", "ToleratedFailurePercentagePath", "V-MAP-05"),
)
_DISTRIBUTED = (
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
    "ToleratedFailureCount",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentage",
    "ToleratedFailurePercentagePath",
    "Label",
)
"""The fields that are documented for a distributed Map only."""


def _exclusive(node: Node, one: str, other: str, rule: str) -> Finding:
    return Finding(
        rule,
        f"{one!r} and {other!r} exclude each other",
        node.at(other),
        related=((node.at(one), f"{one!r} is here"),),
        at_key=True,
        aws=Wording(aws.at_most_one(one, other), at=node.pointer),
    )


def _check_processor(node: Node) -> Iterator[Finding]:
    if "ItemProcessor" in node.value and "Iterator" in node.value:
        yield Finding(
            "V-MAP-01",
            "'ItemProcessor' and 'Iterator' exclude each other",
            node.pointer,
            "'Iterator' is the older name",
            related=((node.at("Iterator"), "'Iterator' is here"),),
            at_key=True,
            aws=Wording(aws.at_most_one("ItemProcessor", "Iterator")),
        )
    elif "ItemProcessor" not in node.value and "Iterator" not in node.value:
        yield Finding(
            "V-MAP-01",
            f"nothing says what {node.name!r} does with an item",
            node.pointer,
            "add 'ItemProcessor'",
            at_key=True,
            aws=Wording(aws.exactly_one("ItemProcessor", "Iterator")),
        )
    elif "Iterator" in node.value:
        yield Finding(
            "V-MAP-13",
            "'Iterator' is the older name of 'ItemProcessor'",
            node.at("Iterator"),
            at_key=True,
        )


def _check_distributed(node: Node) -> Iterator[Finding]:
    processor = next((f for f in ("ItemProcessor", "Iterator") if f in node.value), "ItemProcessor")
    config = _object(_object(node.value.get(processor)).get("ProcessorConfig"))
    if config.get("Mode") != "DISTRIBUTED":
        for field in _DISTRIBUTED:
            if field in node.value:
                # AWS documents tolerance for distributed Maps only, but takes it in any (recorded).
                tolerance = field.startswith("Tolerated")
                yield Finding(
                    "V-MAP-06",
                    f"{field!r} belongs to a distributed Map",
                    node.at(field),
                    severity=Severity.WARNING if tolerance else None,
                    at_key=True,
                )
    elif "ExecutionType" not in config:
        yield Finding(
            "V-MAP-07",
            "a distributed Map needs 'ExecutionType'",
            node.at(processor, "ProcessorConfig"),
            "STANDARD or EXPRESS",
            at_key=True,
            aws=Wording(aws.required(["ExecutionType"])),
        )
    batcher = node.value.get("ItemBatcher")
    if type(batcher) is dict and not any(field.startswith("Max") for field in batcher):
        yield Finding(
            "V-MAP-10",
            "'ItemBatcher' does not bound its batches",
            node.at("ItemBatcher"),
            "add 'MaxItemsPerBatch' or 'MaxInputBytesPerBatch'",
            at_key=True,
        )
    yield from _check_headers(node)


def _check_headers(node: Node) -> Iterator[Finding]:
    config = _object(_object(node.value.get("ItemReader")).get("ReaderConfig"))
    headers = config.get("CSVHeaders")
    pointer = node.at("ItemReader", "ReaderConfig")
    if config.get("CSVHeaderLocation") == "GIVEN" and headers is None:
        wording = Wording(aws.required(["CSVHeaders"]))
        yield Finding("V-MAP-09", "'CSVHeaders' is missing", pointer, at_key=True, aws=wording)
    seen: set[str] = set()
    for index, name in enumerate(headers if type(headers) is list else ()):
        if type(name) is str and name in seen:
            # AWS finds this only when it reads the file (recorded).
            yield Finding(
                "V-MAP-09",
                f"the column {name!r} is listed twice",
                f"{pointer}/CSVHeaders/{index}",
                severity=Severity.WARNING if node.profile.aws else None,
            )
        elif type(name) is str:
            seen.add(name)


def _object(value: Json) -> Mapping[str, Json]:
    return value if type(value) is dict else {}


MAP = StateType("Map", compile_map, check_map)
