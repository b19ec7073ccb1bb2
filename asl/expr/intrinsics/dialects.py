"""Functions of dialects: `CodeMie.Items($, 'items')`.

They are the dialects' JSONata functions (`$codemie_items`) for documents in JSONPath. Each table is
imported on first use; AWS does not have them.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from asl.core.errors import StateError
from asl.core.values import Json
from asl.expr.intrinsics.table import ANY, FUNCTIONS, Function

__all__ = ["dialect_function", "function", "names"]

_SPELLED = {"codemie": "CodeMie"}
"""Names of dialects that are not simply capitalized."""
_INNER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def names(space: str) -> tuple[str, ...]:
    """Return the functions of the dialect with this namespace, none for an unknown one."""
    from asl.expr.jsonata.functions.dialects import dialect_functions as natives

    prefix = space.lower()
    if space != _space(prefix):
        return ()
    return tuple(f"{space}.{_camel(each)}" for each in natives(f"{prefix}_"))


def _space(prefix: str) -> str:
    return _SPELLED.get(prefix, prefix.capitalize())


def _camel(name: str) -> str:
    """Return the name of a function after its namespace: `codemie_prompt_to` is `PromptTo`."""
    return "".join(part.capitalize() for part in name.split("_")[1:])


@cache
def dialect_function(name: str) -> Function | None:
    """Return the function of this name; None for one that no dialect has."""
    from asl.expr.jsonata.functions.dialects import dialect_functions as natives

    space, _, own = name.partition(".")
    if name not in names(space):
        return None
    key = f"{space.lower()}_{_INNER.sub('_', own).lower()}"
    native = natives(key)[key]
    parameters = native.signature.parameters
    needed = sum(not each.pattern.endswith("?") for each in parameters)
    return Function(
        name, _called(name, native), (ANY,) * len(parameters), needed, len(parameters), True
    )


def _called(name: str, native: Any) -> Callable[..., Json]:
    """Return a JSONata function as an intrinsic function, with the same argument checks."""
    from asl.expr.jsonata.faults import QueryFault
    from asl.expr.jsonata.undefined import UNDEFINED

    def called(*arguments: Json) -> Json:
        try:
            checked = native.signature.validate(list(arguments), UNDEFINED)
        except QueryFault as fault:
            raise StateError("States.IntrinsicFailure", f"{name}: {fault}") from None
        found: Json = native.call(*checked)
        return found

    return called


def function(name: str) -> Function | None:
    """Return the function of this name, None for an unknown one."""
    return FUNCTIONS.get(name) if name.startswith("States.") else dialect_function(name)
