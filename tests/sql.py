"""SQL on the file of a store, for tests that look at its rows or damage them."""

from typing import Any

from asl import Store


def rows(store: Store, statement: str, *values: Any) -> list[Any]:
    """Return the rows of a query, with all that is gathered written first."""
    store.session.flush()
    return execute(store, statement, *values)


def execute(store: Store, statement: str, *values: Any) -> list[Any]:
    """Run a statement at once and return its rows."""
    connection: Any = store.session.connection
    return connection._file.execute(statement, values).fetchall()  # type: ignore[no-any-return]
