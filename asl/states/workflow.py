"""Workflow: runs another workflow as an execution of its own (6.13)."""

from collections.abc import Iterator

from asl.core.diagnostics import Finding
from asl.core.errors import StateError
from asl.core.values import Json, type_name
from asl.program import Step
from asl.states.base import Compiler, Node, StateType, describe_field
from asl.states.effects import ChildWorkflow, StateFrame
from asl.states.settings import read_duration


def compile_workflow_state(compiler: Compiler, step: Step) -> None:
    """Compile a Workflow: the result is the output of the execution that it starts."""
    effective_input = compiler.input()
    payload = compiler.payload() if compiler.jsonata else effective_input
    given = compiler.template("Input")
    workflow_id, timeout = compiler.scalar("WorkflowId"), compiler.scalar("Timeout")
    assert workflow_id is not None

    async def work(raw: Json, frame: StateFrame) -> Json:
        data = effective_input(raw, frame)
        workflow = workflow_id(data, frame)
        if type(workflow) is not str or not workflow:
            found = "an empty text" if workflow == "" else type_name(workflow)
            raise StateError("States.Runtime", f"WorkflowId must be a name, not {found}")
        child = ChildWorkflow(
            workflow,
            frame.child_name,
            payload(raw, frame) if given is None else given(data, frame),
            None if timeout is None else read_duration("Timeout", timeout(data, frame)),
        )
        details = {"workflowId": workflow, "execution": child.name, "input": child.data}
        frame.note("WorkflowStarted", details)
        return await frame.effects.child(frame, child)

    step.work = work
    step.finish = compiler.finish()


def check_workflow(node: Node) -> Iterator[Finding]:
    """Nothing beyond the schema, and what is known of the registry (`asl.checks`)."""
    return iter(())


WORKFLOW = StateType(
    "Workflow",
    compile_workflow_state,
    check_workflow,
    effect=True,
    describe=describe_field("WorkflowId"),
)
