"""Libraries that only some need: imported when they are used, named when they are missing."""

from importlib.util import find_spec
from pathlib import Path

from asl.core.errors import AslError

__all__ = ["install_command", "needed"]


def needed(module: str, extra: str, what: str) -> None:
    """Raise AslError, with the line that installs it, unless there is a module of an extra."""
    if find_spec(module) is None:
        raise AslError(f"{what} needs {module!r}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the checkout where asl runs from one."""
    checkout = Path(__file__).parents[2]
    package = "." if (checkout / "pyproject.toml").is_file() else "agent-state-language"
    return f"pip install '{package}[{extra}]'"
