"""Checkpoint: saves the execution, so that it can be resumed there (6.11, 10, companion 3)."""

from collections.abc import Callable, Iterator, Mapping

from asl.core.diagnostics import Finding
from asl.core.errors import StateError
from asl.core.values import Json, excerpt
from asl.expr.frame import Evaluate, ExpressionFrame, constant
from asl.expr.times import parse_duration
from asl.program import AfterTransition, Finish, Step
from asl.states.base import Compiler, Node, StateType, describe_field
from asl.states.effects import CheckpointRequest, StateFrame
from asl.states.settings import read_duration

__all__ = ["CHECKPOINT", "automatic"]

STORAGE = "default"
LIFETIME = "7d"
MAX_NAME = 1000
"""Characters of a name: it becomes a part of ids."""


def compile_checkpoint(compiler: Compiler, step: Step) -> None:
    """Compile a Checkpoint: what is saved is the machine as it leaves this state."""
    effective_input, name = compiler.input(), compiler.text("Name")
    storage, lifetime = compiler.scalar("Storage"), compiler.scalar("TTL") or constant(LIFETIME)
    finish = compiler.finish(_passed_through) or _replaced
    assert name is not None

    async def work(raw: Json, frame: StateFrame) -> Json:
        data, before = effective_input(raw, frame), frame.variables
        saving = CheckpointRequest(
            _name(name(data, frame)),
            _storage(storage, data, frame),
            read_duration("TTL", lifetime(data, frame), allow_never=True),
            None if step.next is None else step.next.name,
            _leaving(finish, raw, frame),
        )
        try:
            return await frame.effects.checkpoint(frame, saving)
        except StateError:
            frame.variables = before
            raise

    step.work = work


def _passed_through(raw: Json, record: Json, frame: ExpressionFrame) -> Json:
    return raw


def _replaced(raw: Json, record: Json, frame: ExpressionFrame) -> Json:
    return record


def _leaving(finish: Finish, raw: Json, frame: ExpressionFrame) -> Callable[[Json], Json]:
    return lambda record: finish(raw, record, frame)


def _name(found: Json) -> str:
    if type(found) is not str or not 0 < len(found) <= MAX_NAME:
        raise StateError(
            "States.Runtime",
            f"Name must be a text of 1 to {MAX_NAME} characters, not {excerpt(found, 200)}",
        )
    return found


def _storage(written: Evaluate | None, data: Json, frame: ExpressionFrame) -> str:
    found = STORAGE if written is None else written(data, frame)
    if type(found) is not str:
        message = f"Storage must be the name of a storage, not {excerpt(found, 200)}"
        raise StateError("States.Runtime", message)
    return found


# Automatic checkpoints


def automatic(written: Mapping[str, Json]) -> AfterTransition | None:
    """Compile `Checkpointing`: what saves the execution between two states, None for nothing."""
    if written.get("Enabled") is False:
        return None
    storage = written.get("Storage", STORAGE)
    lifetime = read_duration("TTL", written.get("TTL", LIFETIME), allow_never=True)
    is_due = _due(written.get("Every", "state"))

    async def between(frame: StateFrame) -> None:
        visit, transitions, latest = frame.checkpoint_progress
        if visit == frame.visit:
            return
        if visit < 0:  # at its first state, or after a resume
            frame.checkpoint_progress = frame.visit, 0, frame.now
            return
        if is_due(transitions + 1, frame.now - latest):
            data = frame.data
            saving = CheckpointRequest(
                None, storage, lifetime, frame.step.name, lambda record: data
            )
            await frame.effects.checkpoint(frame, saving)
            frame.checkpoint_progress = frame.visit, 0, frame.now
        else:
            frame.checkpoint_progress = frame.visit, transitions + 1, latest

    return between


def _due(every: str) -> Callable[[int, float], bool]:
    """Return whether so many transitions and seconds after the latest one the next is due."""
    if every == "state":
        return lambda transitions, seconds: True
    if every.isdecimal():
        most = int(every)
        return lambda transitions, seconds: transitions >= most
    least = parse_duration(every)
    return lambda transitions, seconds: seconds >= least


def check_checkpoint(node: Node) -> Iterator[Finding]:
    """Yield nothing; `asl.checks` compares checkpoints with each other."""
    return iter(())


CHECKPOINT = StateType(
    "Checkpoint",
    compile_checkpoint,
    check_checkpoint,
    effect=True,
    insertions=(("Name",),),
    describe=describe_field("Name"),
)
