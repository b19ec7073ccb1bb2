"""Feedback: requests for feedback on results, and their answers (Specification 8.10).

Feedback never blocks and never changes data. Requests are derived from the history, as events are;
an answer may come at any later time.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from asl.core.diagnostics import Finding, did_you_mean
from asl.core.values import Json, compact, is_integer, is_number, type_name
from asl.expr.frame import ExpressionFrame
from asl.expr.templates import is_dynamic
from asl.states.approval_answers import AnswerRefused
from asl.states.base import Compiler, Node
from asl.states.blocks.audit import compile_redaction
from asl.states.blocks.base import Block

__all__ = ["FEEDBACK", "BuildRequest", "compile_feedback", "validate_answer"]

SCALE: Final = [1, 5]
LONGEST: Final = 10_000
"""Maximum characters of an answer of type `text`."""
STORE: Final = "feedback"
"""The default store of answers."""
ALIASES: Final[Mapping[str, str]] = {"human_rating": "rating"}
OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "rating": ("Scale", "Labels"),
        "thumbs": (),
        "choice": ("Labels",),
        "text": (),
        "structured": ("Fields",),
    }
)
"""The fields that shape an answer, by its type."""
OF_FIELD: Final = ("rating", "thumbs", "choice", "text", "number", "boolean")
"""The types of the fields of a structured answer."""

BuildRequest = Callable[[Json, ExpressionFrame], dict[str, Json] | None]
"""`(raw input, frame) -> request`, None for no request; raises StateError."""


def compile_feedback(compiler: Compiler) -> BuildRequest | None:
    """Compile the feedback request after the success of a Task; None for none."""
    written: Mapping[str, Json] = compiler.state.get("Feedback", {"Collect": False})
    if written.get("Collect") is False or "Agent" not in compiler.state:
        return None
    block = compiler.compiler_at("Feedback")
    effective, question = compiler.input(), block.text("Question")
    redact, settled = compile_redaction(compiler), compiler.computed_block("Feedback")

    def ask(raw: Json, frame: ExpressionFrame) -> dict[str, Json] | None:
        data = effective(raw, frame)
        if redact is not None:
            data = redact(data)
        found = written if settled is None else settled(data, frame)
        if found.get("Collect") is False:
            return None
        asked = {} if question is None else {"question": question(data, frame)}
        return {**_shape(found), **asked}

    return ask


def _type(block: Mapping[str, Json]) -> str:
    kind: str = _raw_type(block)
    return ALIASES.get(kind, kind)


def _shape(block: Mapping[str, Json]) -> dict[str, Json]:
    """Return the shape of the answer for the request."""
    kind = _type(block)
    shape: dict[str, Json] = {"type": kind, "store": block.get("Store", STORE)}
    if kind == "rating":
        shape["scale"] = block.get("Scale", SCALE)
    for field in ("Labels", "Fields", "Optional"):
        if field in block:
            shape[field.lower()] = block[field]
    return shape


# --------------------------------------------------------------------------------------------
# Answers


def validate_answer(request: Mapping[str, Json], answer: Json) -> Json:
    """Return an answer in its stored form.

    Raises:
        AnswerRefused: The answer does not fit the request.
    """
    optional = request.get("optional", False)
    if answer is None and optional is True:
        return None
    if request["type"] != "structured":
        return _JUDGES[request["type"]](request, answer, "the answer")
    if type(answer) is not dict:
        raise AnswerRefused(f"the answer must be an object of fields, not {type_name(answer)}")
    fields = {each["Name"]: each for each in request["fields"]}
    for name in answer:
        if name not in fields:
            hint = did_you_mean(name, fields) or f"there are {', '.join(fields)}"
            raise AnswerRefused(f"unknown field {name!r} ({hint})")
    found: dict[str, Json] = {}
    for name, field in fields.items():
        if answer.get(name) is not None:
            kind = ALIASES.get(field.get("Type", "text"), field.get("Type", "text"))
            lower = {"scale": field.get("Scale", SCALE), "labels": field.get("Labels", [])}
            found[name] = _JUDGES[kind](lower, answer[name], repr(name))
        elif optional is not True and name not in (optional or ()):
            raise AnswerRefused(f"{name!r} is missing")
    return found


def _rating(shape: Mapping[str, Json], answer: Json, what: str) -> Json:
    least, most = shape["scale"]
    labels = shape.get("labels") or []
    if type(answer) is str and answer in labels:
        return least + labels.index(answer)
    if not is_integer(answer) or not least <= answer <= most:
        raise AnswerRefused(f"{what} must be a whole number from {least} to {most}, not {answer!r}")
    return int(answer)


def _thumbs(shape: Mapping[str, Json], answer: Json, what: str) -> Json:
    if type(answer) is bool:
        return "up" if answer else "down"
    if answer not in ("up", "down"):
        raise AnswerRefused(f"{what} must be 'up' or 'down', not {answer!r}")
    return answer


def _choice(shape: Mapping[str, Json], answer: Json, what: str) -> Json:
    labels = shape.get("labels") or []
    if type(answer) is not str or answer not in labels:
        raise AnswerRefused(f"{what} must be one of {', '.join(labels)}, not {answer!r}")
    return answer


def _text(shape: Mapping[str, Json], answer: Json, what: str) -> Json:
    if type(answer) is not str or len(answer) > LONGEST:
        raise AnswerRefused(f"{what} must be a text of at most {LONGEST} characters")
    return answer


def _number(shape: Mapping[str, Json], answer: Json, what: str) -> Json:
    if not is_number(answer):
        raise AnswerRefused(f"{what} must be a number, not {answer!r}")
    return answer


def _boolean(shape: Mapping[str, Json], answer: Json, what: str) -> Json:
    if type(answer) is not bool:
        raise AnswerRefused(f"{what} must be true or false, not {answer!r}")
    return answer


_JUDGES: Final[Mapping[str, Callable[[Mapping[str, Json], Json, str], Json]]] = MappingProxyType(
    {
        "rating": _rating,
        "thumbs": _thumbs,
        "choice": _choice,
        "text": _text,
        "number": _number,
        "boolean": _boolean,
    }
)


# --------------------------------------------------------------------------------------------
# Checking


def _check(node: Node, workflow: Mapping[str, Json]) -> Iterator[Finding]:
    block = node.value["Feedback"]
    if "Type" in block and "Source" in block:
        message = "'Source' is another name of 'Type': write one of them"
        yield Finding("V-FB-01", message, node.at("Feedback", "Source"), at_key=True)
    kind = _type(block) if type(_raw_type(block)) is str else ""
    if kind not in OF_TYPE or is_dynamic(block) or node.is_computed(compact(block)):
        return  # reported by the schema, or checked when it is computed
    for field in ("Scale", "Labels", "Fields"):
        if field in block and field not in OF_TYPE[kind]:
            message = f"{field!r} has no effect on an answer of the type {kind}"
            yield Finding("V-FB-01", message, node.at("Feedback", field), at_key=True)
    for way, message in _shape_faults(kind, block):
        yield Finding("V-FB-01", message, node.at("Feedback", *way))
    if kind == "structured":
        yield from _check_fields(block, node)
    elif type(block.get("Optional")) is list:
        message = f"'Optional' must be true or false: an answer of the type {kind} has no fields"
        yield Finding("V-FB-01", message, node.at("Feedback", "Optional"))


def _raw_type(block: Mapping[str, Json]) -> Json:
    return block.get("Type", block.get("Source", "rating"))


def _shape_faults(kind: str, block: Mapping[str, Json]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield field and fault of a scale and its labels, or of a choice."""
    scale, labels = block.get("Scale", SCALE), block.get("Labels")
    if kind == "rating":
        sound = type(scale) is list and len(scale) == 2 and all(map(is_integer, scale))
        if sound and scale[0] >= scale[1]:
            yield ("Scale",), f"the scale must ascend, not go from {scale[0]} to {scale[1]}"
        elif sound and type(labels) is list and len(labels) != scale[1] - scale[0] + 1:
            steps = scale[1] - scale[0] + 1
            yield ("Labels",), f"{len(labels)} labels for {steps} steps of the scale"
    if kind == "choice" and not labels:
        yield (), "'Labels' is missing: the options to choose from"


def _check_fields(block: Mapping[str, Json], node: Node) -> Iterator[Finding]:
    fields = block.get("Fields")
    if not fields:
        message = "'Fields' is missing: the fields of the answer"
        yield Finding("V-FB-01", message, node.at("Feedback"), at_key=True)
        return
    names: list[Json] = []
    for index, field in enumerate(fields if type(fields) is list else ()):
        if type(field) is not dict:
            continue
        place = ("Feedback", "Fields", index)
        name, kind = field.get("Name"), field.get("Type", "text")
        if type(name) is not str or name in names:
            message = "a field needs a unique 'Name'"
            yield Finding("V-FB-01", message, node.at(*place), at_key=True)
        names.append(name)
        if type(kind) is not str or ALIASES.get(kind, kind) not in OF_FIELD:
            message = f"{kind!r} is not a type of a field"
            hint = f"one of {', '.join(OF_FIELD)}"
            yield Finding("V-FB-01", message, node.at(*place, "Type"), hint)
            continue
        for way, fault in _shape_faults(ALIASES.get(kind, kind), field):
            yield Finding("V-FB-01", fault, node.at(*place, *way))
    optional = block.get("Optional")
    for index, name in enumerate(optional if type(optional) is list else ()):
        if name not in names:
            message = f"there is no field {name!r}"
            yield Finding("V-FB-01", message, node.at("Feedback", "Optional", index))


FEEDBACK = Block("Feedback", _check, lacks=("Scale.$", "Labels.$", "Fields.$"))
