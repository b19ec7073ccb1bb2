"""Evaluate Terraform expressions as far as possible without a deployment."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from math import fmod
from typing import Any, Final

from asl.core.diagnostics import InvalidDocument, did_you_mean
from asl.core.opaque import PLACEHOLDER
from asl.core.values import Json, compact, is_number, json_equal
from asl.sources.definition import SourcePart, UnknownValue
from asl.sources.read_context import ReadContext
from asl.sources.terraform import syntax
from asl.sources.terraform.calls import call, render_template_file
from asl.sources.terraform.folder import TerraformFolder
from asl.sources.terraform.functions import FUNCTIONS, text_of
from asl.sources.terraform.resources import RESOURCES
from asl.sources.terraform.scope import HclScope, UnknownResult
from asl.sources.terraform.variable_types import TypeConverter
from asl.sources.text import TrackedText, join_texts

__all__ = ["Evaluator", "instance_name"]

MAX_DEPTH: Final = 150
"""Levels of nested expressions and references."""

MAX_INSTANCES: Final = 100
"""Instances of a block that are read."""

ENVIRONMENT_VALUES: Final = (
    (r"data\.aws_caller_identity\.[^.]+\.account_id", "{account}"),
    (r"data\.aws_partition\.[^.]+\.dns_suffix", "amazonaws.com"),
    (r"data\.aws_partition\.[^.]+\.partition", "{partition}"),
    (r"data\.aws_region\.[^.]+\.(?:id|name|region)", "{region}"),
    (r"terraform\.workspace", "default"),
)
"""Values of the deployment's environment."""
_ATTRIBUTE = re.compile(
    r"(?:(?P<mode>data)\.)?(?P<kind>aws_\w+)\.(?P<label>[\w-]+)(?P<instance>(?:\[.*\])?)"
    r"\.(?P<attribute>\w+)"
)
"""An attribute of a resource or a data source."""
_PARENTHESES: Final = str.maketrans("{}", "()")
_INSTANCE = re.compile(r'\[(?:"([^"]*)"|[^\]]*)\]')


def instance_name(address: str) -> str:
    """Return the name for an instance of a block: `flow["eu"]` is `flow-eu`."""
    return _INSTANCE.sub(lambda key: f"-{key[1]}" if key[1] else "", address)


class Evaluator:
    """Evaluates the expressions of one folder."""

    def __init__(self, folder: TerraformFolder, context: ReadContext) -> None:
        self.folder = folder
        self.reading = context
        self.depth = 0
        self.open_names: list[str] = []
        """The names being evaluated."""
        self.results: dict[str, SourcePart] = {}
        """Evaluated names."""

    def error(
        self, node: syntax.HclNode, scope: HclScope, message: str, hint: str | None = None
    ) -> InvalidDocument:
        """Return the error of an expression."""
        return self.reading.error(scope.source, node.at, "READ-16", message, hint)

    def value(self, node: syntax.HclNode, scope: HclScope) -> SourcePart:
        """Return the value of an expression; raises InvalidDocument for an invalid one."""
        self.reading.count(scope.source, node.at)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"expressions are nested deeper than {MAX_DEPTH} levels"
            raise self.reading.error(scope.source, node.at, "READ-03", message)
        try:
            return VALUES[type(node)](self, node, scope)
        except UnknownResult:
            return SourcePart(UnknownValue(scope.source_text(node)), node.at)
        finally:
            self.depth -= 1

    # Values as texts, conditions and JSON --------------------------------------------------------

    def text(self, node: syntax.HclNode, scope: HclScope) -> TrackedText:
        """Return the value of an expression as text; a stand-in if it is unknown.

        Raises:
            InvalidDocument: The value is an object, a list or null.
        """
        value = self.value(node, scope).value
        if isinstance(value, TrackedText):
            return value
        if isinstance(value, UnknownValue):
            return self.stand_in(value, scope, node.at)
        if isinstance(value, dict | list) or value is None:
            hint = "convert it with jsonencode" if value is not None else None
            raise self.error(node, scope, "a string is expected here", hint)
        return self.reading.insert(text_of(value), scope.source, node.at)

    def stand_in(self, unknown: UnknownValue, scope: HclScope, at: int) -> TrackedText:
        """Return the caller's value or the placeholder of an unknown value."""
        given = self.reading.value(unknown.text)
        if given is None:
            hint = None
            if unknown.text.startswith("var."):
                hint = f"give it a value: --var {unknown.text.removeprefix('var.')}=..."
            shown = unknown.text.translate(_PARENTHESES)  # braces would end the placeholder
            given = self.reading.stand_in(unknown.text, f"${{{shown}}}", hint)
        return self.reading.insert(given, scope.source, at)

    def fill_unknown(self, part: SourcePart, scope: HclScope) -> SourcePart:
        """Return the value with stand-ins for its unknown parts."""
        self.reading.count(scope.source, part.at)
        value = part.value
        if isinstance(value, UnknownValue):
            return SourcePart(self.stand_in(value, scope, part.at), part.at, part.key_at)
        if isinstance(value, dict):
            each = {key: self.fill_unknown(item, scope) for key, item in value.items()}
            return SourcePart(each, part.at, part.key_at)
        if isinstance(value, list):
            return SourcePart(
                [self.fill_unknown(item, scope) for item in value], part.at, part.key_at
            )
        return part

    def decide(self, node: syntax.HclNode, scope: HclScope) -> bool:
        """Return the value of a condition; raises UnknownResult if it is known after deployment."""
        value = self.json(self.value(node, scope), scope)
        if type(value) is not bool and value not in ("true", "false"):
            raise self.error(node, scope, "a condition must be true or false")
        return value is True or value == "true"

    def json(self, part: SourcePart, scope: HclScope) -> Json:
        """Return the value as JSON; raises UnknownResult if a part is known after deployment."""
        self.reading.count(scope.source, part.at)
        value = part.value
        if isinstance(value, UnknownValue):
            raise UnknownResult
        if isinstance(value, TrackedText):
            self.reading.spend(len(value.string), scope.source, part.at)
            return value.string
        if isinstance(value, dict):
            return {key: self.json(item, scope) for key, item in value.items()}
        if isinstance(value, list):
            return [self.json(item, scope) for item in value]
        return value

    def constant(self, value: Json, scope: HclScope, at: int) -> SourcePart:
        """Return a value without text of its own, at an offset."""
        self.reading.count(scope.source, at)
        if type(value) is dict:
            return SourcePart(
                {key: self.constant(item, scope, at) for key, item in value.items()}, at, at
            )
        if type(value) is list:
            return SourcePart([self.constant(item, scope, at) for item in value], at)
        if type(value) is str:
            return SourcePart(self.reading.insert(value, scope.source, at), at)
        return SourcePart(value, at)

    # Expressions ---------------------------------------------------------------------------------

    def literal(self, node: syntax.HclLiteral, scope: HclScope) -> SourcePart:
        value = node.value
        return SourcePart(
            TrackedText.from_source(value, node.at) if type(value) is str else value, node.at
        )

    def template(self, node: syntax.TemplateExpression, scope: HclScope) -> SourcePart:
        if node.quoted and len(node.parts) == 1 and isinstance(node.parts[0], syntax.HclNode):
            return self.value(node.parts[0], scope)
        texts = [
            part if isinstance(part, TrackedText) else self.text(part, scope) for part in node.parts
        ]
        whole = join_texts(texts, node.at)
        self.reading.spend(len(whole.string), scope.source, node.at)
        self.reading.count(scope.source, node.at, len(whole.runs))
        return SourcePart(whole, node.at)

    def repeat(self, node: syntax.HclRepeat, scope: HclScope) -> SourcePart:
        texts = [self.text(node.body, inner) for inner in self.iterate(node, scope)]
        return SourcePart(join_texts(texts, node.at), node.at)

    def condition(self, node: syntax.HclCondition, scope: HclScope) -> SourcePart:
        return self.value(node.yes if self.decide(node.test, scope) else node.no, scope)

    def array(self, node: syntax.HclTuple, scope: HclScope) -> SourcePart:
        return SourcePart([self.value(item, scope) for item in node.items], node.at)

    def record(self, node: syntax.HclObject, scope: HclScope) -> SourcePart:
        members: dict[str, SourcePart] = {}
        for key, item in node.items:
            part = self.value(item, scope)
            members[self.text(key, scope).string] = SourcePart(part.value, part.at, key.at)
        return SourcePart(members, node.at)

    def loop(self, node: syntax.HclFor, scope: HclScope) -> SourcePart:
        items: list[SourcePart] = []
        members: dict[str, SourcePart] = {}
        for inner in self.iterate(node, scope):
            if node.test is not None and not self.decide(node.test, inner):
                continue
            part = self.value(node.value, inner)
            if node.key is None:
                items.append(part)
                continue
            key = self.text(node.key, inner).string
            if not node.grouped:
                members[key] = SourcePart(part.value, part.at, node.key.at)
            else:
                group = members.setdefault(key, SourcePart([], node.at, node.key.at)).value
                assert isinstance(group, list)
                group.append(part)
        return SourcePart(items if node.key is None else members, node.at)

    def iterate(
        self, node: syntax.HclFor | syntax.HclRepeat, scope: HclScope
    ) -> Iterator[HclScope]:
        """Yield the scope of every iteration of a loop.

        Raises:
            InvalidDocument: The collection is neither a list nor an object.
            UnknownResult: The collection is known only after deployment.
        """
        over = self.value(node.over, scope).value
        if isinstance(over, UnknownValue):
            raise UnknownResult
        at = node.over.at
        pairs: list[tuple[Json, SourcePart]]
        if isinstance(over, dict):
            pairs = list(over.items())
        elif isinstance(over, list):
            pairs = list(enumerate(over))
        else:
            raise self.error(node.over, scope, "a list or an object is expected here")
        for key, item in pairs:
            each = [self.constant(key, scope, at), item] if len(node.names) == 2 else [item]
            yield scope.extend(dict(zip(node.names, each, strict=True)))

    def instances(
        self, attributes: Mapping[str, syntax.HclNode], scope: HclScope
    ) -> list[tuple[str, Mapping[str, SourcePart]]]:
        """Return the instances of a block: the suffix `["key"]` or `[index]` of each, and its
        `each` or `count`.

        A block without repetition, or with an unknown one, has one instance.
        """
        over = attributes.get("for_each")
        number = attributes.get("count")
        found: list[tuple[str, Mapping[str, SourcePart]]] = []
        if over is not None:
            value = self.value(over, scope).value
            pairs = list(value.items()) if isinstance(value, dict) else []
            if isinstance(value, list):
                pairs = [(self.text_or_empty(item), item) for item in value]
            for key, item in pairs[:MAX_INSTANCES]:
                each = {"key": self.constant(key, scope, over.at), "value": item}
                found.append((f"[{compact(key)}]", {"each": SourcePart(each, over.at)}))
        elif number is not None:
            value = self.value(number, scope).value
            many = value if isinstance(value, int) else 1
            for index in range(min(max(many, 1), MAX_INSTANCES)):
                count = {"index": SourcePart(index, number.at)}
                found.append((f"[{index}]", {"count": SourcePart(count, number.at)}))
        return found or [("", {})]

    def text_or_empty(self, part: SourcePart) -> str:
        """Return the text of a part, empty for anything else."""
        return part.value.string if isinstance(part.value, TrackedText) else ""

    def operation(self, node: syntax.HclOperation, scope: HclScope) -> SourcePart:
        """Return the result of an operator.

        Raises:
            InvalidDocument: An operand is not a number or a condition.
        """
        sign = node.operator
        if sign in ("&&", "||") and node.left is not None:
            holds = self.decide(node.left, scope)
            if holds is (sign == "&&"):
                holds = self.decide(node.right, scope)
            return SourcePart(holds, node.at)
        if sign == "!":
            return SourcePart(not self.decide(node.right, scope), node.at)
        right = self.json(self.value(node.right, scope), scope)
        left = 0 if node.left is None else self.json(self.value(node.left, scope), scope)
        if sign in ("==", "!="):
            return SourcePart(json_equal(left, right) is (sign == "=="), node.at)
        try:
            numbers = FUNCTIONS["tonumber"](left), FUNCTIONS["tonumber"](right)
            outcome = ARITHMETIC[sign](*numbers)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            raise self.error(node, scope, f"{sign!r} needs two numbers") from None
        whole = type(outcome) is float and outcome.is_integer()
        return SourcePart(int(outcome) if whole else outcome, node.at)

    def splat(self, node: syntax.HclSplat, scope: HclScope) -> SourcePart:
        """Return the values of an expression for every item.

        Raises:
            UnknownResult: The items are known only after deployment.
        """
        over = self.value(node.of, scope)
        if isinstance(over.value, UnknownValue):
            raise UnknownResult
        items = over.value if isinstance(over.value, list) else [over]
        each = [self.value(node.each, scope.extend({syntax.ITEM: item})) for item in items]
        return SourcePart(each, node.at)

    # References ----------------------------------------------------------------------------------

    def reference(self, node: syntax.HclNode, scope: HclScope) -> SourcePart:
        """Return the value of a name with attributes and indices."""
        steps: list[syntax.HclAttribute | syntax.HclIndex] = []
        while isinstance(node, syntax.HclAttribute | syntax.HclIndex):
            steps.append(node)
            node = node.of
        steps.reverse()
        if not isinstance(node, syntax.HclName):
            part = self.value(node, scope)
        elif node.name in scope.names:
            part = scope.names[node.name]
        elif node.name in scope.template_values:
            part = self.move(scope.template_values[node.name], node.at, scope)
        else:
            part, steps = self.root(node, steps, scope)
        for step in steps:
            part = self.member(part, step, scope)
        return part

    def root(
        self,
        node: syntax.HclName,
        steps: list[syntax.HclAttribute | syntax.HclIndex],
        scope: HclScope,
    ) -> tuple[SourcePart, list[syntax.HclAttribute | syntax.HclIndex]]:
        """Return the value of a reference's start, and the remaining steps."""
        names = [step.name for step in steps if isinstance(step, syntax.HclAttribute)]
        match [node.name, *names]:
            case ["var", name, *_]:
                return self.variable(name, node, scope), steps[1:]
            case ["local", name, *_]:
                return self.local(name, node, scope), steps[1:]
            case ["path", _, *_]:
                return SourcePart(TrackedText.from_source(".", node.at), node.at), steps[1:]
            case ["data", "render_template_file", name, "rendered", *_]:
                block = self.folder.block("data", "render_template_file", name)
                if block is not None:
                    text, _ = render_template_file(self, *block)
                    return self.constant(text.string, scope, node.at), steps[3:]
        return SourcePart(UnknownValue(node.name), node.at), steps

    def member(
        self, of: SourcePart, step: syntax.HclAttribute | syntax.HclIndex, scope: HclScope
    ) -> SourcePart:
        """Return an attribute or an item of a value.

        Raises:
            InvalidDocument: The value has no such member.
        """
        value = of.value
        if isinstance(value, UnknownValue):
            return self.deployment_value(value.text + self.suffix(step, scope), step, scope)
        if isinstance(step, syntax.HclAttribute):
            key: Json = step.name
        else:
            key = self.json(self.value(step.key, scope), scope)
        if isinstance(value, dict) and text_of(key) in value:
            return SourcePart(value[text_of(key)].value, value[text_of(key)].at)
        if isinstance(value, list) and is_number(key) and -1 < key < len(value):
            return value[int(key)]
        hint = did_you_mean(key, value) if isinstance(value, dict) and type(key) is str else None
        raise self.error(step, scope, f"there is no member {key!r}", hint)

    def suffix(self, step: syntax.HclAttribute | syntax.HclIndex, scope: HclScope) -> str:
        if isinstance(step, syntax.HclAttribute):
            return f".{step.name}"
        key = self.value(step.key, scope).value
        if isinstance(key, UnknownValue):
            return f"[{key.text}]"
        return f"[{compact(self.json(SourcePart(key, step.at), scope))}]"

    def deployment_value(self, path: str, node: syntax.HclNode, scope: HclScope) -> SourcePart:
        """Return a value of the deployment: the caller's, a stand-in, or an Unknown."""
        given = self.reading.given_value(path)
        if given is not None:
            return self.constant(given, scope, node.at)
        for pattern, known in ENVIRONMENT_VALUES:
            if re.fullmatch(pattern, path):
                value = self.reading.stand_in(path, self.reading.locate(known))
                return self.constant(value, scope, node.at)
        found = _ATTRIBUTE.fullmatch(path)
        part = None if found is None else self.resource_value(found, node, scope)
        return SourcePart(UnknownValue(path), node.at) if part is None else part

    def resource_value(
        self, path: re.Match[str], node: syntax.HclNode, scope: HclScope
    ) -> SourcePart | None:
        """Return an attribute of a resource as far as the files show it; None if they do not.

        Args:
            path: The match of `_ATTRIBUTE` with the attribute.
        """
        kind, attribute = path["kind"], path["attribute"]
        part = self.argument(path, attribute, node, scope)
        if part is not None:
            return part
        made = RESOURCES.get(kind)
        if made is None or attribute not in made.attributes:
            return None
        named = self.argument(path, made.name, node, scope)
        name = instance_name(path["label"] + path["instance"]) if made.called else None
        if named is not None and isinstance(named.value, TrackedText):
            name = named.value.string
        if name is None:
            return None
        value = self.reading.locate(made.attributes[attribute]) + name
        return self.constant(self.reading.stand_in(path[0], value), scope, node.at)

    def argument(
        self, path: re.Match[str], name: str, node: syntax.HclNode, scope: HclScope
    ) -> SourcePart | None:
        """Return an argument of a resource's block; None if it is absent or known only later."""
        address = f"{path['kind']}.{path['label']}{path['instance']}.{name}"
        found = self.folder.block(path["mode"] or "resource", path["kind"], path["label"])
        if found is None or name not in found[0].body.attributes or address in self.open_names:
            return None
        block, source = found
        instances = dict(self.instances(block.body.attributes, HclScope(source)))
        if path["instance"] not in instances:
            return None
        inner = HclScope(source).extend(instances[path["instance"]])
        return self.known_argument(address, block.body.attributes[name], inner, node, scope)

    def known_argument(
        self,
        address: str,
        argument: syntax.HclNode,
        inner: HclScope,
        node: syntax.HclNode,
        scope: HclScope,
    ) -> SourcePart | None:
        """Return the value of an argument; None, without a note, if it is known only later."""
        notes = dict(self.reading.notes)
        part = self.evaluate_name(address, argument, inner, node, scope)
        value = part.value
        text = value.string if isinstance(value, TrackedText) else ""
        if isinstance(value, UnknownValue) or PLACEHOLDER.search(text):
            self.reading.notes = notes
            return None
        return part

    def local(self, name: str, node: syntax.HclNode, scope: HclScope) -> SourcePart:
        """Return a local value."""
        path = f"local.{name}"
        given = self.reading.given_value(path)
        if given is not None:
            return self.constant(given, scope, node.at)
        found = self.folder.local(name)
        if found is None:
            return self.note_missing(path, node)
        return self.evaluate_name(path, found[0], HclScope(found[1]), node, scope)

    def variable(self, name: str, node: syntax.HclNode, scope: HclScope) -> SourcePart:
        """Return an input variable: the caller's value, that of a tfvars file, or its default."""
        path = f"var.{name}"
        block = self.folder.block("variable", name)
        kind = block[0].body.attributes.get("type") if block else None
        given = self.reading.given_value(path if path in self.reading.given else name)
        types = HclScope(block[1]) if block else scope
        if given is not None:
            value = self.constant(self.convert_variable(given, kind, node, scope), scope, node.at)
            return TypeConverter(self, scope, types).convert(value, kind)
        if name in self.folder.tfvars:
            assigned, source = self.folder.tfvars[name]
            return self.evaluate_name(path, assigned, HclScope(source), node, scope, kind, types)
        if block is None:
            return self.note_missing(path, node)
        default = block[0].body.attributes.get("default")
        if default is None:
            return SourcePart(UnknownValue(path), node.at)
        return self.evaluate_name(path, default, types, node, scope, kind, types)

    def note_missing(self, path: str, node: syntax.HclNode) -> SourcePart:
        message = f"no file of the folder declares {path}"
        self.reading.note("READ-17", message, None, f"${{{path}}}")
        return SourcePart(UnknownValue(path), node.at)

    def evaluate_name(
        self,
        path: str,
        node: syntax.HclNode,
        inner: HclScope,
        at: syntax.HclNode,
        scope: HclScope,
        kind: syntax.HclNode | None = None,
        types: HclScope | None = None,
    ) -> SourcePart:
        """Return the value of a name's expression, moved here from another file.

        Args:
            path: The name.
            node: Its expression.
            inner: Scope of the expression.
            at: Where the name is used.
            scope: Scope of the use.
            kind: Declared type of a variable.
            types: Scope of the type.

        Raises:
            InvalidDocument: The name refers to itself.
        """
        if path in self.open_names:
            raise self.error(at, scope, f"{path} refers to itself")
        if path not in self.results:
            self.open_names.append(path)
            try:
                value = self.value(node, inner)
                self.results[path] = TypeConverter(self, inner, types or inner).convert(value, kind)
            finally:
                self.open_names.pop()
        part = self.results[path]
        return part if inner.source is scope.source else self.move(part, at.at, scope)

    def move(self, part: SourcePart, at: int, scope: HclScope) -> SourcePart:
        """Return a value of another file with an offset of this file."""
        self.reading.count(scope.source, at)
        value = part.value
        if isinstance(value, TrackedText):
            return SourcePart(self.reading.insert(value.string, scope.source, at), at)
        if isinstance(value, dict):
            return SourcePart(
                {key: self.move(item, at, scope) for key, item in value.items()}, at, at
            )
        if isinstance(value, list):
            return SourcePart([self.move(item, at, scope) for item in value], at)
        return SourcePart(value, at)

    def convert_variable(
        self, value: Json, kind: syntax.HclNode | None, node: syntax.HclNode, scope: HclScope
    ) -> Json:
        """Convert the caller's text to the declared type of a variable.

        Raises:
            InvalidDocument: The text does not have the declared type.
        """
        if type(value) is not str or kind is None:
            return value
        convert, hint = FUNCTIONS["jsondecode"], "write it as JSON"
        if isinstance(kind, syntax.HclName):
            convert = FUNCTIONS.get(f"to{kind.name}", FUNCTIONS["tostring"])
            hint = f"it is declared as a {kind.name}"
        try:
            return convert(value)
        except (TypeError, ValueError):
            raise self.error(node, scope, f"the value {value!r} has another type", hint) from None


ARITHMETIC: Final[Mapping[str, Callable[..., Json]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": fmod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

VALUES: Final[Mapping[type[syntax.HclNode], Callable[[Evaluator, Any, HclScope], SourcePart]]] = {
    syntax.HclAttribute: Evaluator.reference,
    syntax.HclCall: call,
    syntax.HclCondition: Evaluator.condition,
    syntax.HclFor: Evaluator.loop,
    syntax.HclIndex: Evaluator.reference,
    syntax.HclLiteral: Evaluator.literal,
    syntax.HclName: Evaluator.reference,
    syntax.HclObject: Evaluator.record,
    syntax.HclOperation: Evaluator.operation,
    syntax.HclRepeat: Evaluator.repeat,
    syntax.HclSplat: Evaluator.splat,
    syntax.TemplateExpression: Evaluator.template,
    syntax.HclTuple: Evaluator.array,
}
"""The evaluation of each kind of expression."""
