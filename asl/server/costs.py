"""What the executions of a project have cost, and what is left of its shared budgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from asl.engine.journal_values import read_usage
from asl.engine.usage import ZERO, read_totals
from asl.server.projects import ServerProject
from asl.states.blocks.budget_limits import WINDOWS
from asl.states.numbers import parse_amount
from asl.stores.executions import StoredExecution

__all__ = ["BudgetState", "CostRow", "CostTable", "budgets_of", "costs_since"]

SCANNED: Final = 500
MOST: Final = 5_000
"""Executions whose costs are added up."""


@dataclass(slots=True)
class CostRow:
    """Costs and tokens of one workflow or model."""

    name: str
    executions: int = 0
    cost: Decimal = ZERO
    tokens: int = 0

    def add(self, cost: Decimal, tokens: int) -> None:
        """Add the costs of one execution."""
        self.executions += 1
        self.cost += cost
        self.tokens += tokens


@dataclass(slots=True)
class CostTable:
    """Costs of executions.

    Attributes:
        total: Of all of them.
        workflows: By the name of the workflow.
        models: By the name of the model.
        is_complete: Whether no execution of the time is left out.
    """

    total: CostRow = field(default_factory=lambda: CostRow(""))
    workflows: dict[str, CostRow] = field(default_factory=dict)
    models: dict[str, CostRow] = field(default_factory=dict)
    is_complete: bool = True


def costs_since(project: ServerProject, since: float) -> CostTable:
    """Return the costs of the executions that started after a time, the latest ones first.

    Raises:
        StoreDamaged: The usage of an execution is damaged.
    """
    table, session = CostTable(), project.store.session
    for stored in _started_since(project, since):
        if table.total.executions == MOST:
            table.is_complete = False
            break
        usage = project.store.reader.spending(stored)
        with session.damage_reports(f"the execution {stored.name!r}"):
            total, _, models, *_ = usage or [["0", 0], {}, {}]
            spent = read_usage(total)
            by_model = read_totals(models)
        row = table.workflows.setdefault(stored.workflow, CostRow(stored.workflow))
        for each in (table.total, row):
            each.add(spent.cost, spent.tokens)
        for name, amounts in by_model.items():
            table.models.setdefault(name, CostRow(name)).add(*amounts)
    return table


def _started_since(project: ServerProject, since: float) -> Iterator[StoredExecution]:
    before = None
    while rows := project.store.executions(before=before, limit=SCANNED):
        for each in rows:
            if each.started >= since:
                yield each
        if rows[-1].started < since:
            return
        before = rows[-1].number


class BudgetState(NamedTuple):
    """A shared budget.

    Attributes:
        name: What it limits.
        spent: What counts as spent now.
        reserved: What open calls have reserved.
        most: The limit; None if this process does not know it.
    """

    name: str
    spent: Decimal
    reserved: Decimal
    most: Decimal | None

    @property
    def percent(self) -> float:
        """The used share of the limit in percent, 0 without one."""
        if not self.most:
            return 0.0
        return min(100.0, float(100 * (self.spent + self.reserved) / self.most))


def budgets_of(project: ServerProject, now: float) -> list[BudgetState]:
    """Return the pools of a project and the other budgets that executions share.

    Raises:
        StoreDamaged: A budget is damaged.
    """
    pools: Mapping[str, str | Decimal] = project.bindings.get("pools") or {}
    limits = {
        f"Pool {name}": amount if isinstance(amount, Decimal) else parse_amount(amount)
        for name, amount in pools.items()
    }
    found = {}
    for each in project.store.shared_budgets():
        length = WINDOWS.get(each.name.partition(" ")[0])
        spent = sum(
            (amount for end, amount in each.spent.items() if length is None or end > now - length),
            ZERO,
        )
        most = limits.get(each.name)
        found[each.name] = BudgetState(each.name, spent, each.reserved, most)
    for name, most in limits.items():
        found.setdefault(name, BudgetState(name, ZERO, ZERO, most))
    return [found[name] for name in sorted(found)]
