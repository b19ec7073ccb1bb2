"""JSONata: the query language of `{% ... %}` strings (Specification 3.6).

A source is parsed once into a `Query`, which reports what it reads and is called with the values of
`$states` and of the workflow's variables. Input and output are JSON; inputs are never changed, and
every evaluation is bounded.
"""

from asl.expr.jsonata.functions.dialects import function_names, is_function
from asl.expr.jsonata.query import UNDEFINED, Query, QueryFault, parse
from asl.expr.jsonata.scopes import limits

__all__ = [
    "UNDEFINED",
    "Query",
    "QueryFault",
    "function_names",
    "is_function",
    "limits",
    "parse",
]
