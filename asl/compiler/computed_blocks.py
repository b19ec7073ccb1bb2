"""Blocks that are read as a whole once their fields are computed (Specification 3.9).

Most fields are read one by one when a call starts (`asl.states.settings`). A history, a channel and
the memory of a run read a whole block. So it is computed as a whole and checked like a document: by
its schema and its rules.
"""

from collections.abc import Iterable, Iterator, Mapping

from asl.core.codes import lookup
from asl.core.diagnostics import Finding, Severity, Suggestions
from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, compact
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.templates import is_dynamic
from asl.program import Step
from asl.states.base import Compiler, Node
from asl.states.blocks import BLOCKS

__all__ = ["compile_computed_block"]


def compile_computed_block(
    compiler: Compiler, field: str, step: Step, whole: Mapping[str, Json]
) -> Evaluate | None:
    """Compile a block: `(effective or execution input, frame) -> block`; None for a constant block.

    A computed null counts as an absent field. The closure raises StateError for an invalid value:
    States.InvalidTTL for a duration, else States.Runtime, in JSONata States.QueryEvaluationError.

    Args:
        compiler: Compiles the object that contains the block.
        field: Name of the block.
        step: The state; a step without a pointer represents the workflow.
        whole: The whole state, or the workflow.
    """
    block, template = compiler.state[field], compiler.template(field)
    namespace = compiler.compiler_at(field).text("Namespace") if field == "Memory" else None
    texts = namespace is not None and "{{" in str(block.get("Namespace"))
    if template is None or not (texts or _is_computed(compiler.jsonata, block)):
        return None
    evaluate = template

    def settled(data: Json, frame: ExpressionFrame) -> Json:
        value = _present(block, evaluate(data, frame))
        if texts and namespace is not None:
            value["Namespace"] = namespace(data, frame)
        for finding in _faults(compiler, field, value, step, whole):
            if (finding.severity or lookup(finding.code).severity) == Severity.ERROR:
                raise _unfit(compiler, finding, step)
        return value

    return settled


def _is_computed(jsonata: bool, block: Json) -> bool:
    return "{%" in compact(block) if jsonata else is_dynamic(block)


def _present(written: Json, value: Json) -> Json:
    """Return a computed value without fields that are null."""
    if type(written) is list and type(value) is list:
        return [_present(*each) for each in zip(written, value, strict=True)]
    if type(written) is not dict or type(value) is not dict:
        return value
    return {
        key: _present(written.get(key), each)
        for key, each in value.items()
        if each is not None or written.get(key, "") is None
    }


def _faults(
    compiler: Compiler, field: str, value: Json, step: Step, whole: Mapping[str, Json]
) -> Iterator[Finding]:
    from asl.checks.structure import shape

    block = BLOCKS[field]
    near = Suggestions()
    if not step.pointer:
        yield from shape(f"asl#/properties/{field}", value, f"/{field}", near)
        yield from block.check_workflow(value)
        yield from _refused(block.missing(value, None))
        return
    pointer = f"{step.pointer}/{field}"
    yield from shape(f"states:{step.type}#/properties/{field}", value, pointer, near)
    node = Node(
        {**whole, field: value},
        step.pointer,
        step.name,
        frozenset(step.siblings),
        compiler.profile,
    )
    yield from block.check(node, {})
    yield from _refused(block.missing(value, node))


def _refused(missing: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for place, why in missing:
        yield Finding("EXEC-02", why, place, severity=Severity.ERROR)


def _unfit(compiler: Compiler, finding: Finding, step: Step) -> StateError:
    place = finding.pointer.removeprefix(step.pointer).strip("/").replace("/", ".")
    whose = f"state '{step.name}'" if step.pointer else step.name
    cause = f"{whose}: {place}: {finding.message}"
    if finding.pointer.endswith("TTL"):
        return StateError("States.InvalidTTL", cause)
    if compiler.jsonata:
        return EvaluationFailed(cause, place)
    return StateError("States.Runtime", cause)
