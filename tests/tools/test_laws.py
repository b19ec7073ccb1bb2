"""What holds of all policies: rights only shrink, rates and bounds are kept."""

import os
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import asl
from asl.effects.tools.bounds import CallBounds
from asl.states.blocks.tool_policy import ToolPolicy, overlay
from asl.states.errors import RaisedError

from .workflows import task

Json = Any
NAMES = ["a", "b", "ab", "abc", "x/a", "x/b"]
PATTERNS = st.sampled_from([*NAMES, "*", "a*", "*b", "x/*", "web", "nothing"])
LISTS = st.lists(PATTERNS, max_size=3)
BLOCKS = st.fixed_dictionaries(
    {}, optional={"Allowed": LISTS, "Denied": LISTS, "DeniedCategories": st.just(["web"])}
)
CATEGORIES = {"web": ["a", "x/*"]}


def used(blocks: list[Json]) -> set[str]:
    """Return the tools that all policies let through."""
    policies = [ToolPolicy(block, CATEGORIES) for block in blocks]
    return {
        name
        for name in NAMES
        if not any(each.refusal((name, name.rpartition("/")[2])) for each in policies)
    }


@given(st.lists(BLOCKS, min_size=1, max_size=4), BLOCKS)
def test_rights_shrink_with_each_level(levels: list[Json], more: Json) -> None:
    """Whatever the next level says."""
    assert used([*levels, more]) <= used(levels)


@given(BLOCKS, BLOCKS)
def test_what_is_denied_stays_denied(below: Json, above: Json) -> None:
    """A state cannot take back what its document denies; without a list of its own it has that."""
    denied = set(NAMES) - used([{k: v for k, v in below.items() if k.startswith("Denied")}])
    over = overlay(below, above)
    assert over is not None
    assert not denied & used([over])
    if "Allowed" not in above:
        assert used([over]) <= used([below])


WINDOWS = {"BurstLimit": 1, "MaxPerMinute": 60}
CALLS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([0, 0, 0.4, 1, 20, 45])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    CALLS,
    st.fixed_dictionaries(
        {"OnExceed": st.sampled_from(["fail", "wait"])},
        optional={
            "BurstLimit": st.integers(1, 3),
            "MaxPerMinute": st.integers(1, 4),
            "MaxConcurrent": st.integers(1, 2),
        },
    ),
    st.booleans(),
    st.sampled_from(["*", "a"]),
)
def test_no_rate_is_ever_exceeded(
    calls: list[tuple[str, float]], limit: Json, together: bool, pattern: str
) -> None:
    """However many calls come at once, and however they wait."""
    made: list[tuple[str, float, float]] = []

    def tool(name: str) -> Any:
        async def answer(arguments: Json, call: asl.Call) -> Json:
            began = clock.now()
            await call.sleep(3)
            made.append((name, began, clock.now()))
            return None

        return answer

    clock = asl.VirtualClock()
    asked = [{"tool": name, "after": after, "tolerate": True} for name, after in calls]
    result = asl.run(
        task({"RateLimits": {pattern: limit}}),
        agents={"A": {"use": [asked] if together else asked}},
        tools={"a": tool("a"), "b": tool("b")},
        clock=clock,
    )
    assert result.ok
    counted = [each for each in made if pattern == "*" or each[0] == pattern]
    begins = sorted(began for _, began, _ in counted)
    for field, width in WINDOWS.items():
        for first in begins if field in limit else ():
            assert sum(first <= each < first + width for each in begins) <= limit[field]
    for first in begins if "MaxConcurrent" in limit else ():
        assert sum(b <= first < e for _, b, e in counted) <= limit["MaxConcurrent"]
    if limit["OnExceed"] == "wait":
        assert len(made) == len(calls)


STEPS = st.sampled_from(["data", "secret", "..", ".", "f", "way", "back", "", "data/..", "~", "*"])


@settings(max_examples=200)
@given(st.lists(STEPS, min_size=1, max_size=6), st.booleans())
def test_no_path_leads_out(tmp_path_factory: Any, steps: list[str], absolute: bool) -> None:
    """What is let through lies below the folder that is allowed, after all links."""
    root = _tree(tmp_path_factory)
    path = "/".join(steps)
    if absolute:
        path = f"{root}/{path}"
    files = ToolPolicy({"FileSystem": {"AllowedPaths": ["./data/**"]}}, {}).files
    assert files is not None
    try:
        CallBounds("t", (), [files], str(root)).path(path, reading=True)
    except RaisedError:
        return
    real = os.path.realpath(os.path.join(root, os.path.expanduser(path)))
    assert Path(real).is_relative_to(root / "data")


_trees: list[Path] = []


def _tree(factory: Any) -> Path:
    if not _trees:
        root: Path = factory.mktemp("tree").resolve()
        for one, two in product(("data", "secret"), ("f", "sub/f")):
            (root / one / two).parent.mkdir(parents=True, exist_ok=True)
            (root / one / two).write_text("x")
        (root / "data" / "way").symlink_to(root / "secret")
        (root / "secret" / "back").symlink_to(root / "data")
        (root / "back").symlink_to(root / "data" / "sub")
        _trees.append(root)
    return _trees[0]
