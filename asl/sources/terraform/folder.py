"""Files of a Terraform module: its folder shares declarations."""

import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Final

from asl.core.document import open_source, too_large
from asl.core.source import Limits, Source
from asl.sources.terraform import parser, syntax

__all__ = ["TerraformFolder", "read_hcl"]

MAX_FILES: Final = 200
"""Other files of a folder that are read."""


def read_hcl(source: Source, limits: Limits) -> syntax.HclBody:
    """Parse a file; raises InvalidDocument. HCL has the limits of YAML."""
    text = source.text or ""
    if len(text) > limits.max_yaml_bytes:
        raise too_large(source.name, limits.max_yaml_bytes)
    return parser.parse(source)


class TerraformFolder:
    """One file, and the other files of its folder, read on first use."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.limits = limits
        self.source = source
        self.body = read_hcl(source, limits)

    @cached_property
    def files(self) -> list[tuple[Source, syntax.HclBody]]:
        """The other files, in alphabetical order; none for a text without a file."""
        return [(each, read_hcl(each, self.limits)) for each in self.other_files((".tf",))]

    @cached_property
    def tfvars(self) -> dict[str, tuple[syntax.HclNode, Source]]:
        """The values of files that Terraform loads automatically."""
        return {
            name: (node, source)
            for source in self.other_files(("terraform.tfvars", ".auto.tfvars"))
            for name, node in read_hcl(source, self.limits).attributes.items()
        }

    def other_files(self, endings: tuple[str, ...]) -> Iterator[Source]:
        name = self.source.name
        if name is None or name.startswith("<"):
            return
        folder, own = os.path.split(name)
        try:
            with os.scandir(folder or ".") as entries:
                found = [each.name for each in entries if each.is_file()]
        except OSError:  # the source is a text, not a file
            return
        names = sorted(each for each in found if each.endswith(endings) and each != own)
        for each in islice(names, MAX_FILES):
            yield open_source(os.path.join(folder, each), limits=self.limits)._replace(format="hcl")

    def blocks(self, *head: str) -> Iterator[tuple[syntax.HclBlock, Source]]:
        """Yield the blocks with a type and labels, those of the first file first."""
        for block in self.body.blocks:
            if (block.kind, *block.labels) == head:
                yield block, self.source
        for source, body in self.files:
            for block in body.blocks:
                if (block.kind, *block.labels) == head:
                    yield block, source

    def resources(self, kind: str) -> Iterator[tuple[syntax.HclBlock, Source]]:
        """Yield the blocks of a type of resource."""
        files = [(self.source, self.body), *self.files]
        for source, body in files:
            for block in body.blocks:
                if block.kind == "resource" and block.labels[:1] == [kind]:
                    yield block, source

    def block(self, *head: str) -> tuple[syntax.HclBlock, Source] | None:
        """Return the first of these blocks."""
        return next(self.blocks(*head), None)

    def local(self, name: str) -> tuple[syntax.HclNode, Source] | None:
        """Return the expression of a local value."""
        for block, source in self.blocks("locals"):
            if name in block.body.attributes:
                return block.body.attributes[name], source
        return None
