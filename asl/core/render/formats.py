"""The formats of reports: one module for each, which is loaded when it is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module

from asl.core.render.reports import Reports

__all__ = ["RENDERERS"]


def _renderer(format: str) -> Callable[[Reports], str]:
    def render(reports: Reports) -> str:
        module = import_module(f"asl.core.render.{format}")
        text: str = getattr(module, f"render_{format}")(reports)
        return text

    return render


RENDERERS: Mapping[str, Callable[[Reports], str]] = {
    format: _renderer(format) for format in ("text", "json", "sarif", "github", "aws")
}
"""What shows reports in each format, by its name."""
