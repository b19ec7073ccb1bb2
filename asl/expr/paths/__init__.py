"""Paths: `$.a.b[0]`, `$$.Execution.Id`, `$name.field`, wildcards, slices, unions and filters.

A path is parsed once (`syntax`) into a tuple of steps (`segments`) and compiled into a closure
(`closures`). A *definite* path names at most one node and is compiled to direct look-ups; an
*indefinite* one yields the array of all matching nodes (`selection`, with filters) and never fails
(Specification 3.2, 3.3). `nodes` locates, replaces and removes the nodes of a path. In the profile
`aws`, paths beyond names and indices follow another engine (`jayway`, `amazon`).
"""

from asl.expr.paths.amazon import concerns
from asl.expr.paths.closures import PathUse, compile_path
from asl.expr.paths.segments import Path, Segment
from asl.expr.paths.syntax import parse_path, parse_reference_path, parse_result_path

__all__ = [
    "Path",
    "PathUse",
    "Segment",
    "compile_path",
    "concerns",
    "parse_path",
    "parse_reference_path",
    "parse_result_path",
]
