"""The kinds of history records.

The interpreter writes one flat tuple per stretch of pure states and a few per effect, and nothing
else; `asl.engine.history` expands them into events. Every record begins with
`(kind, time, frame, visit, step)`; `step` is None where a machine has ended.
"""

STRETCH = "stretch"
"""`first step, data, variables, length, step after`: pure states that ran in one go."""
ENTERED = "entered"
"""`data, variables`: a state that reaches the world began."""
FAILED = "failed"
"""`error`: one attempt failed."""
RETRIED = "retried"
"""`error, delay, retry`: the state will run again after *delay* seconds."""
AGAIN = "again"
"""`data, variables, retry`: the delay is over, the next attempt begins."""
CAUGHT = "caught"
"""`error, next step`: a catcher takes over."""
EXITED = "exited"
"""`(raw result,) or None, output, variables before and after, next step`: the state is done."""
BROKEN = "broken"
"""`error`: the machine failed."""
ABORTED = "aborted"
"""The machine was cancelled because a sibling failed."""
