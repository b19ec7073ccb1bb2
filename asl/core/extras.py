"""Libraries that only some need: imported when they are used, named when they are missing."""

from importlib.util import find_spec

from asl.core.errors import AslError

__all__ = ["needed"]


def needed(module: str, extra: str, what: str) -> None:
    """Raise AslError, with the line that installs it, unless there is a module of an extra."""
    if find_spec(module) is None:
        raise AslError(f"{what} needs {module!r}: pip install 'agent-state-language[{extra}]'")
