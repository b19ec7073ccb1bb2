"""Say why a workflow did not succeed, and where in the document."""

from asl.cli.places import Path, name_of
from asl.core.document import Document
from asl.engine.frame import Frame
from asl.engine.records import BROKEN, FAILED
from asl.engine.result import Result
from asl.states.host import Record

__all__ = ["explained"]

def explained(result: Result, document: Document) -> str:
    """Return error and cause, the failing state with its place, and what may help."""
    lines = [f"asl: workflow {_ending(result)}"]
    record = _origin(result)
    if record is not None:
        lines.append(f"  in {name_of(_path(record[2], record[4].name))}")
        place = document.locate(record[4].pointer, at_key=True)
        if place.line is not None:
            lines[-1] += f" at {document.source.name}:{place.line}:{place.column}"
    if result.error == "States.AgentNotFound":
        lines.append("  hint: bind it with --agent NAME=module:function or --agents FILE")
    return "\n".join(lines)


def _ending(result: Result) -> str:
    if result.status == "TIMED_OUT":
        return f"timed out after {result.elapsed:g} s, by the document's TimeoutSeconds"
    if result.status == "ABORTED":
        return "was aborted"
    why = ": ".join(each for each in (result.error, result.cause) if each)
    return f"failed: {why or 'without an error name'}"


def _origin(result: Result) -> Record | None:
    """Return the record of the state in which the error that ended everything came up."""
    ends = [each for each in result.records if each[0] == BROKEN and each[2].parent is None]
    if not ends:
        return None
    error = ends[-1][5]
    return next(
        (
            each
            for each in result.records
            if each[0] in (FAILED, BROKEN) and each[5] is error and each[4] is not None
        ),
        None,
    )


def _path(frame: Frame, state: str) -> Path:
    path: list[str | int] = [state]
    at = frame
    while at.parent is not None:
        path += [at.index, at.parent.step.name]
        at = at.parent
    return tuple(reversed(path))
