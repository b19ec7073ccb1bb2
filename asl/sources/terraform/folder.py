"""The files of a Terraform module: one folder, in which each may refer to what another declares."""

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
"""How many other files of a folder are looked at."""


def read_hcl(source: Source, limits: Limits) -> syntax.Body:
    """What a file says; raises InvalidDocument. HCL has the bounds of YAML."""
    text = source.text or ""
    if len(text) > limits.max_yaml_bytes:
        raise too_large(source.name, limits.max_yaml_bytes)
    return parser.parse(source)


class TerraformFolder:
    """One file of a folder, and the others as soon as it refers to something else."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.limits = limits
        self.source = source
        self.body = read_hcl(source, limits)

    @cached_property
    def files(self) -> list[tuple[Source, syntax.Body]]:
        """The other files, in alphabetical order; none if the first one is no file itself."""
        return [(each, read_hcl(each, self.limits)) for each in self.others((".tf",))]

    @cached_property
    def assigned(self) -> dict[str, tuple[syntax.Node, Source]]:
        """What the files say that Terraform reads values from without being asked."""
        return {
            name: (node, source)
            for source in self.others(("terraform.tfvars", ".auto.tfvars"))
            for name, node in read_hcl(source, self.limits).attributes.items()
        }

    def others(self, endings: tuple[str, ...]) -> Iterator[Source]:
        name = self.source.name
        if name is None or name.startswith("<"):
            return
        folder, own = os.path.split(name)
        try:
            with os.scandir(folder or ".") as entries:
                found = [each.name for each in entries if each.is_file()]
        except OSError:  # the name of a text that never was a file
            return
        names = sorted(each for each in found if each.endswith(endings) and each != own)
        for each in islice(names, MAX_FILES):
            yield open_source(os.path.join(folder, each), limits=self.limits)._replace(format="hcl")

    def blocks(self, *head: str) -> Iterator[tuple[syntax.Block, Source]]:
        """Yield the blocks of a kind and with labels, the first file's before those of others."""
        for block in self.body.blocks:
            if (block.kind, *block.labels) == head:
                yield block, self.source
        for source, body in self.files:
            for block in body.blocks:
                if (block.kind, *block.labels) == head:
                    yield block, source

    def block(self, *head: str) -> tuple[syntax.Block, Source] | None:
        """The first of these blocks."""
        return next(self.blocks(*head), None)

    def local(self, name: str) -> tuple[syntax.Node, Source] | None:
        """What a local value is."""
        for block, source in self.blocks("locals"):
            if name in block.body.attributes:
                return block.body.attributes[name], source
        return None
