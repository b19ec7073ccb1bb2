"""What an operator allows every document that runs here; documents can only narrow it."""

from collections.abc import Mapping, Sequence
from os.path import normpath, realpath
from typing import Final

from asl.core.values import Json
from asl.expr.glob import compile_glob
from asl.hosts.rates import Counting, counting
from asl.hosts.rights import Level
from asl.states.blocks.policy import Policy, mounts_of

__all__ = ["OperatorPolicy"]

OPERATOR: Final = "operator"
"""Under this name the calls of all workflows are counted for the operator's rate limits."""


class OperatorPolicy:
    """Bounds around the policies of all documents of a run.

    Args:
        tools: A constant `Tools` block, which holds as if it stood around every document.
        categories: `ToolCategories` for its patterns.
        images: Patterns of the images that a sandbox may run; None for any.
        mounts: Folders that a sandbox may show, each with all that is below; None for any.
    """

    def __init__(
        self,
        tools: Mapping[str, Json] | None = None,
        categories: Mapping[str, list[str]] | None = None,
        images: Sequence[str] | None = None,
        mounts: Sequence[str] | None = None,
    ) -> None:
        self.levels: tuple[Level, ...] = ()
        if tools:
            counts: Counting = counting({"DefaultTools": dict(tools)})
            self.levels = (Level(Policy(tools, categories or {}), {}, OPERATOR, counts),)
        self.images = None if images is None else [compile_glob(each) for each in images]
        self.mounts = None if mounts is None else [realpath(each) for each in mounts]

    def refusal(self, sandbox: Mapping[str, Json]) -> str | None:
        """Return why the settings of a sandbox are not allowed, None where they are."""
        image = sandbox.get("Image")
        if self.images is not None and image is not None and not self._runs(str(image)):
            return f"the operator's policy does not allow the image {image!r}"
        if self.mounts is not None and "Mounts" in sandbox:
            for mount in mounts_of(sandbox["Mounts"]):
                if not any(_is_below(mount.source, folder) for folder in self.mounts):
                    return f"the operator's policy does not allow to mount {mount.source!r}"
        return None

    def _runs(self, image: str) -> bool:
        return any(matches(image) for matches in self.images or ())


def _is_below(path: str, folder: str) -> bool:
    real = realpath(normpath(path))
    return real == folder or real.startswith(folder.rstrip("/") + "/")
