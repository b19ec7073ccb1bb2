"""Random JSONata: expressions that can be read, whatever comes of evaluating them."""

import json
from typing import Any

from hypothesis import strategies as st

Json = Any

ROOTS = ("$states.input", "$states.input", "$states", "$states.context", "$x", "$local", "$")
NAMES = ("a", "b", "`c d`", "*", "**", "%")
BINARY = (*"+-*/%&=<>", "!=", "<=", ">=", "and", "or", "in", "..", "~>")
FUNCTIONS = (
    *("string", "length", "substring", "substringBefore", "uppercase", "trim", "pad", "contains"),
    *("split", "join", "match", "replace", "base64encode", "base64decode", "encodeUrl", "number"),
    *("abs", "floor", "round", "power", "sqrt", "formatNumber", "formatBase", "formatInteger"),
    *("parseInteger", "sum", "max", "average", "boolean", "not", "exists", "count", "append"),
    *("sort", "reverse", "shuffle", "distinct", "zip", "keys", "lookup", "spread", "merge", "sift"),
    *("each", "error", "assert", "type", "fromMillis", "toMillis", "map", "filter", "single"),
    *("reduce", "now", "millis", "partition", "range", "hash", "random", "uuid", "parse", "eval"),
)

atoms = (
    st.sampled_from(ROOTS)
    | st.sampled_from([f"${name}" for name in FUNCTIONS])
    | st.sampled_from(["null", "true", "false", "0", "1", "-2.5", "1e300", "''", "'a'", "'é😀'"])
    | st.sampled_from(["[]", "{}", "/a.*b/i", "/[0-9]+/", "'[Y]-[M]'", "'#,##0.00'"])
    | st.integers(-99, 99).map(str)
    | st.text('ab{}[]"\\ ', max_size=4).map(json.dumps)
)


def compound(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    many = st.lists(part, max_size=3)
    few = st.lists(part, min_size=1, max_size=2)
    name = st.sampled_from(NAMES)
    return st.one_of(
        st.builds("({} {} {})".format, part, st.sampled_from(BINARY), part),
        st.builds("({}).{}".format, part, name | part.map("({})".format)),
        st.builds("({})[{}]".format, part, part),
        st.builds("[({})[]]".format, part),
        st.builds("({} ? {} : {})".format, part, part, part),
        st.builds("(-({}))".format, part),
        many.map(lambda parts: f"[{', '.join(parts)}]"),
        few.map(lambda parts: "{" + ", ".join(f"'k{i}': {p}" for i, p in enumerate(parts)) + "}"),
        st.builds("{{$string({}): {}}}".format, part, part),
        st.builds("({}){{$string($): {}}}".format, part, part),
        st.builds("({})^(>{})".format, part, part),
        st.builds("({}) ~> |$|{{'new': {}}}|".format, part, part),
        st.builds("($local := {}; {})".format, part, part),
        st.builds("function($v, $i) {{ {} }}".format, part),
        st.builds("(function($v) {{ {} }})({})".format, part, part),
        st.builds("$map({}, function($v, $i) {{ {} }})".format, part, part),
        st.builds("$filter({}, function($v) {{ $boolean({}) }})".format, part, part),
        st.builds("({})@$each.({})".format, part, part),
        st.builds(
            lambda name, parts: f"${name}({', '.join(parts)})", st.sampled_from(FUNCTIONS), many
        ),
        st.builds(
            lambda name, parts: f"${name}({', '.join([*parts, '?'])})",
            st.sampled_from(FUNCTIONS),
            few,
        ),
    )


sources = st.recursive(atoms, compound, max_leaves=8)
"""Texts of expressions. `$` and a name alone may stand where there is nothing, and be refused."""

templates = st.recursive(
    sources.map("{{% {} %}}".format) | st.none() | st.booleans() | st.text("{%} $a", max_size=5),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.text("{%} .$a", max_size=4), part, max_size=3)
    ),
    max_leaves=3,
)
