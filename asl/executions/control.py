"""The part of a store that acts on executions: answers, task tokens, cancellation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asl.core.values import Json
from asl.executions import approvals
from asl.executions.reader import StoreReader
from asl.executions.task_tokens import StoreTaskTokens
from asl.stores.requests import OPEN, damaged_requests

__all__ = ["StoreControl"]


class StoreControl(StoreReader):
    """Approval requests, task tokens and cancellation of the executions of a store."""

    def pending(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the open approval requests, oldest first.

        Args:
            name: Name or id of an execution, for its requests and those of its descendants; None
                for those of all executions, without damaged ones.
            limit: Maximum number of requests; None for all.
            after: The id of the last request of the previous page. It may be answered by now.
            damaged: Receives a sentence about each damaged request found, if `name` is None.

        Raises:
            ExecutionNotFound: There is no such execution.
            RequestNotFound: There is no request `after`.
            StoreDamaged: A request of the execution is damaged.
        """
        self._check_request(after)
        if name is None:
            met = [] if damaged is None else damaged
            found = self._reader.all_open_requests(limit=limit, after=after, damaged=met)
        else:
            found = self._reader.open_requests(self.get(name), limit=limit, after=after)
        return [asked.view for asked in found]

    def _check_request(self, id: str | None) -> None:
        """Raise RequestNotFound for an unknown request id or task token."""
        if id is not None:
            self.execution_of(id)

    def damaged_requests(self) -> list[str]:
        """Return a sentence about each damaged open request."""
        return damaged_requests(self.session, OPEN)

    def answered_requests(self, name: str) -> list[dict[str, Json]]:
        """Return the answered requests of an execution and its descendants, oldest first.

        The execution has not continued since; `resume` or a runner does.

        Raises:
            ExecutionNotFound: There is no such execution.
        """
        return [asked.view for asked in self._reader.answered_requests(self.get(name))]

    def request(self, request_id: str) -> dict[str, Json]:
        """Return a request, open or closed.

        Raises:
            RequestNotFound: There is no such request.
        """
        return self._reader.request(request_id).view

    def execution_of(self, request_id: str) -> str:
        """Return the name of the execution that made a request or waits for a task token.

        `resume` continues its root (`root`).

        Raises:
            RequestNotFound: There is no such request or token.
        """
        return self._reader.execution_of(request_id)

    def answer(
        self,
        request_id: str,
        approval: str | None = None,
        *,
        by: str | None = None,
        comment: str | None = None,
        edited: Mapping[str, Json] | None = None,
        roles: Sequence[str] = (),
        **more: Json,
    ) -> Json:
        """Answer an approval request; `resume` or a runner continues the execution.

        Repeating an answer has no further effect.

        Args:
            request_id: The request.
            approval: The chosen option.
            by: Name of the approver.
            comment: A comment on the decision.
            edited: New values of the editable fields.
            roles: Roles of the approver.
            more: Further fields of the answer.

        Returns:
            The record of the decision, None while more approvals are needed.

        Raises:
            AnswerRefused: The rules do not allow the answer, or it is too late. Nothing changes.
            RequestNotFound: There is no such request.
        """
        given = {"approval": approval, "approver": by, "comment": comment, "edited_content": edited}
        answer = {**more, **{key: value for key, value in given.items() if value is not None}}
        if roles:
            answer["roles"] = list(roles)
        return self._record_answer(request_id, answer)

    def _record_answer(self, request_id: str, answer: dict[str, Json]) -> Json:
        """Record an answer for a runner and return the record of the decision."""
        record = approvals.record_answer(self.session, request_id, answer, self.clock.now())
        self._executor.notify()
        return record

    @property
    def tokens(self) -> StoreTaskTokens:
        """The task tokens of all executions; any process may answer them."""
        return StoreTaskTokens(self._reader)

    def pending_callbacks(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the tasks that wait for a callback with their token, oldest first.

        Each has the name of its `execution`.

        Args:
            name: As for `pending`.
            limit: As for `pending`.
            after: The token of the last task of the previous page.
            damaged: As for `pending`.

        Raises:
            ExecutionNotFound: There is no such execution.
            RequestNotFound: There is no token `after`.
        """
        self._check_request(after)
        if name is None:
            met = [] if damaged is None else damaged
            found = self._reader.all_pending_callbacks(limit=limit, after=after, damaged=met)
        else:
            found = self._reader.pending_callbacks(self.get(name), limit=limit, after=after)
        return [{**task.view, "execution": self.execution_of(task.token)} for task in found]

    def cancel(self, name: str, cause: str | None = None, *, error: str | None = None) -> None:
        """Abort an execution in any process; its status becomes ABORTED.

        A runner aborts it within a second, another process after the effect under way. Its
        reservations in shared budgets are released.

        Args:
            name: Name or id of the execution.
            cause: The cause of the abort.
            error: The error name of the abort.

        Raises:
            ExecutionNotFound: There is no such execution.
            AslError: It has ended, or another execution started it.
        """
        self._executor.cancel(name, error, cause)
