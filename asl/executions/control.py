"""What reaches executions from outside: answers of people, task tokens, cancellation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asl.core.values import Json
from asl.executions import approvals
from asl.executions.reader import StoreReader
from asl.executions.task_tokens import StoreTaskTokens
from asl.stores.requests import OPEN, damaged_requests, find_requests, find_tasks

__all__ = ["StoreControl"]


class StoreControl(StoreReader):
    """The executions of a store, with what they ask, what is answered, and their cancellation."""

    def pending(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the open requests as people see them, the oldest first.

        Args:
            name: The execution whose requests are meant, and those of all that it has started; None
                for those of all executions, without damaged ones.
            limit: How many at most; None for all.
            after: The id of a request: those behind it, for the next page. It may be answered.
            damaged: Takes a sentence on each damaged one of all executions that was met.

        Raises:
            ExecutionNotFound: There is no such execution.
            RequestNotFound: There is no request *after* which others may be.
            StoreDamaged: A request of the execution is damaged.
        """
        self._check_request(after)
        if name is None:
            met = [] if damaged is None else damaged
            found = find_requests(self.session, OPEN, limit=limit, after=after, damaged=met)
        else:
            found = self._reader.open(self.get(name), limit=limit, after=after)
        return [asked.shown for asked in found]

    def _check_request(self, id: str | None) -> None:
        """Raise RequestNotFound for the id of a request, or a task token, that is not there."""
        if id is not None:
            self.execution_of(id)

    def damaged_requests(self) -> list[str]:
        """Return a sentence on each open request whose row is not as it was written."""
        return damaged_requests(self.session, OPEN)

    def answered_requests(self, name: str) -> list[dict[str, Json]]:
        """Return the requests of an execution that are decided: `resume` goes on with them.

        Those of all that it has started are among them, the oldest first.
        """
        return [asked.shown for asked in self._reader.answered_requests(self.get(name))]

    def request(self, request_id: str) -> dict[str, Json]:
        """Return a request as people see it, also one that is not open any more.

        Raises RequestNotFound.
        """
        return approvals.find_request(self.session, request_id).shown

    def execution_of(self, request_id: str) -> str:
        """Return the name of the execution that has made a request or waits for a task token.

        `root` of it names the execution that the answer is for. Raises RequestNotFound.
        """
        return approvals.execution_of(self.session, request_id)

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
        """Answer a request; returns the record of the decision, None while others have to agree.

        The same answer twice is one. Raises AnswerRefused for an answer outside of the rules, or
        one that comes too late; nothing has changed then. `resume` goes on with the execution.
        """
        given = {"approval": approval, "approver": by, "comment": comment, "edited_content": edited}
        answer = {**more, **{key: value for key, value in given.items() if value is not None}}
        if roles:
            answer["roles"] = list(roles)
        record = approvals.record_answer(self.session, request_id, answer, self.clock.now())
        self._executor.notify()
        return record

    @property
    def tokens(self) -> StoreTaskTokens:
        """The desk where the task tokens of all executions are answered, by any process."""
        return StoreTaskTokens(self._reader)

    def awaited(
        self,
        name: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        damaged: list[str] | None = None,
    ) -> list[dict[str, Json]]:
        """Return the tasks that wait for the answer to their token, the oldest first.

        Each has the name of its `execution`. See `pending` for the arguments; *after* is a token.
        """
        self._check_request(after)
        if name is None:
            met = [] if damaged is None else damaged
            found = find_tasks(self.session, OPEN, limit=limit, after=after, damaged=met)
        else:
            found = self._reader.awaited(self.get(name), limit=limit, after=after)
        return [{**task.shown, "execution": self.execution_of(task.token)} for task in found]

    def cancel(self, name: str, cause: str | None = None, *, error: str | None = None) -> None:
        """End an execution, whoever is at work on it; its status becomes ABORTED.

        A runner that is at work on it ends it within a second, another process behind the effect
        that is under way. What was held for it of shared budgets, others may spend.

        Args:
            name: Its name or id.
            cause: The cause that it ends with.
            error: The error name that it ends with.

        Raises:
            ExecutionNotFound: There is none.
            AslError: It has ended, or is a part of another one.
        """
        self._executor.cancel(name, error, cause)
