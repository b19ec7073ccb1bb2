"""The terms on which an execution began, recorded so that it goes on with them."""

from asl.effects.prices import FixedPrices
from asl.effects.rights import read_rights, written_rights
from asl.engine.execution import Execution
from asl.engine.journal import Journal

__all__ = ["keep_terms"]

PRICES = "!prices"
"""The key under which the prices of an execution are recorded."""
RIGHTS = "!rights"
"""The key under which the tool policies are kept that bind an execution from outside."""


def keep_terms(journal: Journal, execution: Execution) -> None:
    """Record the rights and the prices of an execution, or find those with which it began."""
    _keep_rights(journal, execution)
    _keep_prices(journal, execution)


def _keep_rights(journal: Journal, execution: Execution) -> None:
    """Keep the tool policies of whoever has started the execution, or find them."""
    known = journal.answers.pop(RIGHTS, None)
    if not execution.rights and known is None:
        return
    if not execution.rights:
        execution.identity = execution.identity._replace(rights=read_rights(known))
    elif known is None:
        journal.put_answer(RIGHTS, written_rights(execution.rights))


def _keep_prices(journal: Journal, execution: Execution) -> None:
    """Record the prices of the execution, or find those with which it began."""
    recorded = journal.answers.pop(PRICES, None)
    if recorded is None:
        recorded = {
            model: [str(price.input), str(price.output)]
            for model, price in execution.prices.items()
        }
        if recorded:
            journal.put_answer(PRICES, recorded)
    execution.prices = FixedPrices(
        execution.prices, recorded, lambda prices: journal.put_answer(PRICES, dict(prices))
    )
