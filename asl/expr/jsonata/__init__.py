"""JSONata: the query language of `{% ... %}` strings, behind one bounded door.

A source is parsed once into a `Query`, which says what it reads and is called with the values of
`$states` and of the workflow's variables. What goes in and comes out is JSON; inputs are never
changed. Specification 3.6.
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
