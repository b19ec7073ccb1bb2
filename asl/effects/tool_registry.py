"""The tool policies of a run: those of its documents, and the operator's around them (8.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os.path import normpath, realpath
from typing import Any, Final, NamedTuple

from asl.core.values import Json
from asl.effects.rate_limits import CallTracking, RateLimiter, tracking_of
from asl.engine.tools import ListTools
from asl.expr.text_matching import compile_glob
from asl.states.blocks.budget_limits import Amounts
from asl.states.blocks.tool_policy import (
    ToolHook,
    ToolPolicy,
    ToolRules,
    overlay,
    parse_mounts,
    tool_categories,
)

__all__ = ["OperatorPolicy", "PolicyLevel", "ToolRegistry"]

OPERATOR: Final = "operator"
"""Name under which calls of all workflows count for the operator's rate limits."""


class PolicyLevel(NamedTuple):
    """One policy with its context."""

    policy: ToolPolicy
    hooks: Mapping[str, tuple[ToolHook, Json]]
    """Hook and its parameters, by `Before` and `After`."""
    workflow: str
    """Workflow whose calls count together."""
    tracking: CallTracking
    """Tracking that its limits require."""


class ToolRegistry:
    """The tools of one run and their call counts."""

    def __init__(self, listings: Mapping[str, ListTools]) -> None:
        self.boxes = listings
        """Tools by the names of their bindings."""
        self.rates = RateLimiter()
        self.policies: dict[tuple[int, int, int], tuple[ToolPolicy, tuple[Any, ...]]] = {}
        """Policies of constant blocks, with those blocks, by their identities."""
        self.countings: dict[int, tuple[CallTracking, Mapping[str, Json]]] = {}
        """Tracking by the identity of the document, with the document."""

    def policy(
        self, below: ToolRules | None, own: ToolRules | None, document: Mapping[str, Json]
    ) -> ToolPolicy:
        """Return the policy of a state's rules over those of its document.

        Raises:
            ValueError: A rule is invalid.
        """
        blocks = [None if each is None else each.block for each in (below, own)]
        key = id(blocks[0]), id(blocks[1]), id(document)
        if key in self.policies:
            return self.policies[key][0]
        block = overlay(*blocks)
        assert block is not None
        policy = ToolPolicy(block, tool_categories(document))
        if all(each is None or each.constant for each in (below, own)):
            self.policies[key] = policy, (*blocks, document)
        return policy

    def tracking_of(self, document: Mapping[str, Json]) -> CallTracking:
        """Return the tracking that the limits of a document require."""
        found = self.countings.get(id(document))
        if found is None:
            found = self.countings[id(document)] = tracking_of(document), document
        return found[0]


class OperatorPolicy:
    """Limits around the policies of all documents of a run.

    Args:
        tools: A constant `Tools` block, which applies around every document.
        categories: `ToolCategories` for its patterns.
        images: Patterns of the images that a sandbox may run; None for any.
        mounts: Folders that a sandbox may mount, including all below; None for any.
        budget: Limits of each execution; None for none.
    """

    def __init__(
        self,
        tools: Mapping[str, Json] | None = None,
        categories: Mapping[str, list[str]] | None = None,
        images: Sequence[str] | None = None,
        mounts: Sequence[str] | None = None,
        budget: Amounts | None = None,
    ) -> None:
        self.levels: tuple[PolicyLevel, ...] = ()
        if tools:
            counts: CallTracking = tracking_of({"DefaultTools": dict(tools)})
            self.levels = (PolicyLevel(ToolPolicy(tools, categories or {}), {}, OPERATOR, counts),)
        self.budget = budget or None
        self.images = None if images is None else [compile_glob(each) for each in images]
        self.mounts = None if mounts is None else [realpath(each) for each in mounts]

    def refusal(self, sandbox: Mapping[str, Json]) -> str | None:
        """Return why the settings of a sandbox are not allowed, None if they are."""
        image = sandbox.get("Image")
        if self.images is not None and image is not None and not self._runs(str(image)):
            return f"the operator's policy does not allow the image {image!r}"
        if self.mounts is not None and "Mounts" in sandbox:
            for mount in parse_mounts(sandbox["Mounts"]):
                if not any(_is_below(mount.source, folder) for folder in self.mounts):
                    return f"the operator's policy does not allow to mount {mount.source!r}"
        return None

    def _runs(self, image: str) -> bool:
        return any(matches(image) for matches in self.images or ())


def _is_below(path: str, folder: str) -> bool:
    real = realpath(normpath(path))
    return real == folder or real.startswith(folder.rstrip("/") + "/")
