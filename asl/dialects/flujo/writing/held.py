"""Where the data of a line of steps stands, which is handed from step to step elsewhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asl.core.values import Json
from asl.dialects.flujo.writing.paths import context_path, field_of

__all__ = ["Held"]

_ITEM: Final = "$$.Map.Item.Value"
_BEFORE: Final = "previous_step"
_CONTEXT: Final = "context"
_KEY: Final = re.compile(r"context(?:\.(\w+)|\['([^']*)'\])")


@dataclass(frozen=True, slots=True)
class Held:
    """What paths of the data become: those of `fields` by themselves, all others below `root`.

    Both are paths of templates, None for what cannot be named any more; `item` is that of an item.
    """

    root: str | None = _CONTEXT
    fields: Mapping[str, str | None] = field(default_factory=dict)
    item: str | None = None

    def path(self, path: str) -> str | None:
        """Return a JSONPath as a path of a template, None where there is none for it."""
        if path == _ITEM or path.startswith((f"{_ITEM}.", f"{_ITEM}[")):
            return _below(self.item, path.removeprefix(_ITEM))
        if path == "$":
            whole = self.root == _BEFORE and not self.fields
            return self.root if whole else None
        found = context_path(path)
        match = _KEY.match(found) if found is not None else None
        if found is None or match is None:
            return None
        key = match[1] or match[2]
        if key in self.fields:
            own = self.fields[key]
            return None if own is None else own + found[match.end() :]
        return None if self.root is None else self.root + found.removeprefix(_CONTEXT)

    def of_items(self, selector: Json) -> "Held":
        """Return where an item stands for the first step of a Map, or what that selects for it."""
        if selector is None:
            return Held(_BEFORE, item=_BEFORE)
        return Held(self.root, self.fields, _BEFORE).selected(selector)

    def selected(self, template: Json) -> "Held":
        """Return where the fields of a template stand; those that are no paths stand nowhere."""
        fields: dict[str, str | None] = {}
        for key, value in template.items() if isinstance(template, dict) else ():
            computed = key.endswith(".$") and isinstance(value, str)
            fields[key.removesuffix(".$")] = self.path(value) if computed else None
        return Held(None, fields, self.item)

    def after(self, state: Mapping[str, Any], *, jsonata: bool, merged: str | None) -> "Held":
        """Return where the data stands behind a state; *merged* is the field its Output writes."""
        kind = state["Type"]
        makes = [key for key in ("Result", "Parameters", "Output") if key in state]
        if kind in ("Choice", "Wait", "Succeed", "Checkpoint") or (kind == "Pass" and not makes):
            shaped = {"InputPath", "OutputPath", "ResultPath"} & state.keys()
            return Held(None) if shaped else self
        if "OutputPath" in state or "ResultSelector" in state:
            return Held(None)
        path = state.get("ResultPath", "$")
        if jsonata and "Output" in state:
            return self._written(merged) if merged is not None else Held(None)
        if path == "$":
            made = state.get("Result")
            if kind != "Pass":
                return Held(_BEFORE)
            names = made if isinstance(made, dict) else ()
            return Held(None, {name: f"{_CONTEXT}.{name}" for name in names})
        return self._written(field_of(path))

    def _written(self, key: str | None) -> "Held":
        """Return where data stands of which one field, or none, has been written."""
        kept = {
            name: each if each is not None and each.startswith(_CONTEXT) else None
            for name, each in self.fields.items()
        }
        if key is not None:
            kept[key] = f"{_CONTEXT}.{key}"
        return Held(_CONTEXT if self.root == _CONTEXT else None, kept)


def _below(root: str | None, rest: str) -> str | None:
    found = context_path(f"${rest}") if rest else _CONTEXT
    return None if root is None or found is None else root + found.removeprefix(_CONTEXT)
