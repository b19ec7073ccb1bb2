"""State machines in Terraform files: HCL and its expressions."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from asl.core.diagnostics import InvalidDocument
from asl.core.document import Document, PlannedStart
from asl.core.opaque import PLACEHOLDER
from asl.core.source import Limits, Source
from asl.sources.definition import (
    SourcePart,
    document_from_part,
    document_from_text,
    document_from_yaml,
)
from asl.sources.read_context import Note, ReadContext
from asl.sources.terraform import calls, syntax
from asl.sources.terraform.expressions import Evaluator, instance_name
from asl.sources.terraform.folder import TerraformFolder
from asl.sources.terraform.scope import HclScope, UnknownResult
from asl.sources.text import TrackedText

__all__ = ["TerraformTemplate"]

KIND: Final = "aws_sfn_state_machine"
MAX_STEPS: Final = 100
"""Maximum number of names between a definition and its expression."""


class Instance(NamedTuple):
    """A block, with `each` and `count` of one of its instances."""

    block: syntax.HclBlock
    names: Mapping[str, SourcePart]
    refusal: InvalidDocument | None = None
    """The fault of `for_each` or `count`."""


class TerraformTemplate:
    """State machines of a Terraform file, including modules with a definition."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.source = source
        self.notes: tuple[Note, ...] = ()
        self.hints: dict[str, str] = {}
        self.folder = TerraformFolder(source, limits)
        self.instances = {
            name: instance
            for block in self.folder.body.blocks
            if (base := _name(block)) is not None
            for name, instance in self.block_instances(block, base, ReadContext({}, limits))
        }
        self.names = {name: self.other_names(name) for name in self.instances}

    def deployed_name(self, name: str, context: ReadContext) -> str:
        """Return the name of a state machine in ARNs: its own, else that of its block or module."""
        block, names, _ = self.instances[name]
        node = block.body.attributes.get("name")
        if node is not None:
            scope = HclScope(self.source).extend(names)
            own = Evaluator(self.folder, context).value(node, scope).value
            if isinstance(own, TrackedText) and not PLACEHOLDER.search(own.string):
                return own.string
        return instance_name(name.removeprefix("module."))

    def is_express(self, name: str, context: ReadContext) -> bool:
        """Return whether a state machine is of the type EXPRESS."""
        block, names, _ = self.instances[name]
        node = block.body.attributes.get("type")
        if node is None:
            return False
        evaluator, scope = (
            Evaluator(self.folder, context),
            HclScope(self.source).extend(names),
        )
        kind = evaluator.value(node, scope).value
        return isinstance(kind, TrackedText) and kind.string == "EXPRESS"

    def planned_starts(self, name: str, context: ReadContext) -> tuple[PlannedStart, ...]:
        """Return no schedules: those of templates of SAM and CloudFormation are read."""
        return ()

    def qualifiers(self, name: str, context: ReadContext) -> tuple[str, ...]:
        """Return the version of a state machine that is published, and its aliases."""
        block = self.instances[name].block
        address = f"{'.'.join(block.labels)}{name.removeprefix(_name(block) or name)}."
        found = [
            _alias_name(each, source, address, Evaluator(self.folder, context))
            for each, source in self.folder.resources("aws_sfn_alias")
        ]
        published = "publish" in block.body.attributes
        return tuple(dict.fromkeys(filter(None, (*(["1"] if published else ()), *found))))

    def block_instances(
        self, block: syntax.HclBlock, base: str, context: ReadContext
    ) -> Iterator[tuple[str, Instance]]:
        """Yield the state machines of a block: one for each value of `for_each` or `count`."""
        evaluator, scope = Evaluator(self.folder, context), HclScope(self.source)
        try:
            instances = evaluator.instances(block.body.attributes, scope)
        except InvalidDocument as refusal:
            yield base, Instance(block, {}, refusal)
            return
        if len(instances) == 1 and "for_each" not in block.body.attributes:
            yield base, Instance(block, instances[0][1])
            return
        for key, names in instances:
            yield f"{base}{key}", Instance(block, names)

    def other_names(self, name: str) -> frozenset[str]:
        """Return the other names of an instance: its address, and that of its block."""
        block = self.instances[name].block
        base = _name(block) or name
        address = ".".join(block.labels)
        return frozenset((base, address, f"{address}{name.removeprefix(base)}")) - {name}

    def document(self, name: str, context: ReadContext) -> Document:
        """Return the definition of a state machine; raises InvalidDocument."""
        block, names, refusal = self.instances[name]
        if refusal is not None:
            raise refusal
        context.literal_placeholders = True  # Terraform writes a literal placeholder as $${
        definition = block.body.attributes.get("definition")
        if definition is None:
            message = f"{name} has no definition"
            raise context.error(self.source, block.at, "READ-14", message)
        return _Machine(Evaluator(self.folder, context), name).document(
            definition, HclScope(self.source).extend(names)
        )


def _name(block: syntax.HclBlock) -> str | None:
    """Return the name of the state machine that a block declares, None for other blocks."""
    if block.kind == "resource" and len(block.labels) == 2 and block.labels[0] == KIND:
        return block.labels[1]
    if block.kind == "module" and block.labels and "definition" in block.body.attributes:
        return f"module.{block.labels[0]}"
    return None


def _alias_name(
    alias: syntax.HclBlock, source: Source, address: str, evaluator: Evaluator
) -> str | None:
    """Return the name of an alias if it routes to the state machine at an address."""
    scope, name = HclScope(source), alias.body.attributes.get("name")
    routes = [each.body for each in alias.body.blocks if each.kind == "routing_configuration"]
    versions = [each.attributes.get("state_machine_version_arn") for each in routes]
    routed = any(each and scope.source_text(each).startswith(address) for each in versions)
    return evaluator.text(name, scope).string if routed and name is not None else None


class _Machine:
    """One state machine of a file."""

    def __init__(self, evaluator: Evaluator, name: str) -> None:
        self.evaluator = evaluator
        self.reading = evaluator.reading
        self.name = name

    def document(self, node: syntax.HclNode, scope: HclScope) -> Document:
        node, scope = self.origin(node, scope)
        if (
            isinstance(node, syntax.HclCall)
            and node.name == "jsonencode"
            and len(node.arguments) == 1
        ):
            node, scope = self.origin(node.arguments[0], scope)
            if isinstance(node, syntax.HclCall) and node.name in ("jsondecode", "yamldecode"):
                return self.decode(node, scope)
            part = self.evaluator.fill_unknown(self.evaluator.value(node, scope), scope)
            return document_from_part(part, scope.source, self.reading, self.name)
        return document_from_text(*self.text(node, scope), self.reading, self.name)

    def decode(self, node: syntax.HclCall, scope: HclScope) -> Document:
        (argument,) = calls.checked_arguments(self.evaluator, node, scope, 1)
        text, source = self.text(*self.origin(argument, scope))
        read = document_from_yaml if node.name == "yamldecode" else document_from_text
        return read(text, source, self.reading, self.name)

    def text(self, node: syntax.HclNode, scope: HclScope) -> tuple[TrackedText, Source]:
        """Return the text of an expression, and the file that contains it."""
        match node:
            case syntax.HclCall(name="file" | "templatefile"):
                return calls.read_template_call(self.evaluator, node, scope)
            case syntax.HclAttribute(
                of=syntax.HclAttribute(
                    of=syntax.HclAttribute(of=syntax.HclName(name="data"), name="template_file"),
                    name=name,
                ),
                name="rendered",
            ) if block := self.evaluator.folder.block("data", "template_file", name):
                return calls.render_template_file(self.evaluator, *block)
        return self.evaluator.text(node, scope), scope.source

    def origin(self, node: syntax.HclNode, scope: HclScope) -> tuple[syntax.HclNode, HclScope]:
        """Return an expression and its scope after following names and conditions."""
        for _ in range(MAX_STEPS):
            match node:
                case syntax.TemplateExpression(quoted=True, parts=[syntax.HclNode() as only]):
                    node = only
                case syntax.HclCondition():
                    try:
                        node = node.yes if self.evaluator.decide(node.test, scope) else node.no
                    except UnknownResult:
                        return node, scope
                case syntax.HclAttribute(of=syntax.HclName(name="local"), name=name) if (
                    f"local.{name}" not in self.reading.given
                    and (found := self.evaluator.folder.local(name)) is not None
                ):
                    node, scope = found[0], HclScope(found[1])
                case _:
                    return node, scope
        raise self.evaluator.error(node, scope, "the definition refers to itself")
