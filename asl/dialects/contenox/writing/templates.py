"""Values as a template says them: in an action, shown as a text, shown as JSON."""

import re
from typing import Final

from asl.core.errors import ExpressionFault
from asl.core.values import Json, compact
from asl.dialects.contenox.functions.templates import parse
from asl.dialects.contenox.writing.knowledge import Env
from asl.dialects.contenox.writing.values import (
    Constant,
    Members,
    Moving,
    Part,
    Text,
    Value,
    as_text,
)

__all__ = ["as_json", "operand", "parses", "shown"]

_NAME: Final = re.compile(r"[^\W\d]\w*")


def operand(value: Value, env: Env) -> str | None:
    """Return a value as it stands in an action of a template, None for what cannot."""
    if isinstance(value, Constant):
        return _literal(value.value)
    if isinstance(value, Text):
        parts = [operand(each, env) for each in value.parts]
        return None if None in parts else f"print {' '.join(map(_grouped, map(str, parts)))}"
    if not isinstance(value, Part):
        return None
    if isinstance(value.root, Moving):
        if env.flow != Part(value.root):
            return None
        steps: tuple[str | int, ...] = ("previous_output", *value.path)
    else:
        steps = (value.root, *value.path)
    if any(isinstance(step, int) and step < 0 for step in steps):
        return None
    if all(isinstance(step, str) and _NAME.fullmatch(step) for step in steps):
        return "".join(f".{step}" for step in steps)
    return f"index . {' '.join(str(_literal(step)) for step in steps)}"


def _grouped(action: str) -> str:
    return f"({action})" if " " in action and action[0] not in '".' else action


def _literal(value: Json) -> str | None:
    if value is None:
        return "nil"
    if isinstance(value, str):
        return compact(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = compact(value)
    if isinstance(value, int | float) and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", shown):
        return shown
    return None


def shown(value: Value, env: Env) -> str | None:
    """Return a value as part of a template that shows it as a text, None for what cannot."""
    if isinstance(value, Constant):
        return _escaped(as_text(value.value))
    if isinstance(value, Text):
        parts = [shown(each, env) for each in value.parts]
        return None if None in parts else "".join(map(str, parts))
    said = operand(value, env)
    return None if said is None else f"{{{{{said}}}}}"


def as_json(value: Value, env: Env) -> str | None:
    """Return a value as part of a template that shows it as JSON, None for what cannot."""
    if isinstance(value, Constant):
        return _escaped(compact(value.value))
    if isinstance(value, Members):
        if value.base is not None:
            return None
        parts = [(key, as_json(each, env)) for key, each in value.members]
        if any(part is None for _, part in parts):
            return None
        return f"{{{', '.join(f'{_escaped(compact(key))}: {part}' for key, part in parts)}}}"
    said = operand(value, env)
    return None if said is None else f"{{{{toJson {_grouped(said)}}}}}"


def _escaped(text: str) -> str:
    """Return a text as it stands in a template; braces that would begin an action are shown."""
    return re.sub(r"\{(?=\{)|\{$", '{{"{"}}', text)


def parses(template: str) -> bool:
    """Whether a template is one."""
    try:
        parse(template)
    except ExpressionFault:
        return False
    return True
