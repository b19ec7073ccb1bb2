"""Context of one read: the caller's values, stand-ins, files, notes and limits."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from asl.core import json_text, yaml_text
from asl.core.diagnostics import Finding, InvalidDocument, did_you_mean
from asl.core.document import Document, clip, invalid, open_source, too_large
from asl.core.errors import DocumentNotFound
from asl.core.opaque import PLACEHOLDER
from asl.core.source import DEFAULT_LIMITS, Fault, Limits, Source
from asl.core.values import Json, compact
from asl.core.work import WorkExceeded, WorkMeter
from asl.core.yaml_schema import Schema
from asl.sources.text import TrackedText

__all__ = [
    "ACCOUNT",
    "DUPLICATE",
    "PARTITION",
    "REGION",
    "Note",
    "ReadContext",
    "as_text",
    "fault_notes",
    "read_template",
    "repository_of",
]

PARTITION, REGION, ACCOUNT = "aws", "us-east-1", "111111111111"
"""Assumed place of the deployment."""
PSEUDO_PARAMETERS: Final = {
    "partition": ("AWS::Partition", PARTITION),
    "region": ("AWS::Region", REGION),
    "account": ("AWS::AccountId", ACCOUNT),
}
"""The fields of ARNs, with the names of the caller's values and the assumed ones."""


@dataclass(frozen=True, slots=True)
class Note:
    """A finding about the first value that contains `text`, or about the whole document."""

    code: str
    message: str
    hint: str | None = None
    text: str | None = None


@dataclass(slots=True)
class ReadContext:
    """State of one call of `load`: the caller's values, and notes about other values."""

    given: Mapping[str, Json]
    limits: Limits = DEFAULT_LIMITS
    root: str | None = None
    looked_up: set[str] = field(default_factory=set)
    """Names that the template refers to."""
    files: set[str] = field(default_factory=set)
    """Real paths of the files that the template names."""
    notes: dict[Note, None] = field(default_factory=dict)
    ancestors: tuple[str, ...] = ()
    """Real paths of the templates that nest the one that is read."""
    literal_placeholders: bool = False
    """Whether all remaining placeholders are literal text."""
    characters: int = 0
    values: int = 0
    meter: WorkMeter = field(default_factory=WorkMeter)
    """Counts work that creates no values: repeated evaluation, searches."""

    def given_value(self, name: str) -> Json:
        """Return the caller's value for a name; None without one."""
        self.looked_up.add(name)
        return self.given.get(name)

    def value(self, name: str) -> str | None:
        """Return the text of the caller's value for a name."""
        value = self.given_value(name)
        return None if value is None else as_text(value)

    def locate(self, prefix: str) -> str:
        """Return the beginning of an ARN or URL for the place of the deployment.

        Args:
            prefix: A text with the fields `{partition}`, `{region}` and `{account}`.
        """
        place = {}
        for part, (name, assumed) in PSEUDO_PARAMETERS.items():
            place[part] = self.value(name) if name in self.given else assumed
        return prefix.format_map(place)

    def stand_in(self, name: str, text: str, hint: str | None = None) -> str:
        """Note that *text* replaces a value known only after deployment; return *text*."""
        message = f"{clip(name)} is known only after deployment; here it is {clip(text)!r}"
        hint = hint or f"give it a value: --var {clip(name)}=..."
        self.note("READ-12", message, hint, text)
        return text

    def note(self, code: str, message: str, hint: str | None, text: str | None = None) -> None:
        """Record a note about a text once."""
        self.notes.setdefault(Note(code, message, hint, text))

    def insert(self, value: str, source: Source, origin: int) -> TrackedText:
        """Return the value as an inserted text at an offset, within the limits."""
        self.spend(len(value), source, origin)
        return TrackedText.insertion(value, origin)

    def spend(self, characters: int, source: Source, origin: int) -> None:
        """Count composed characters against the limits.

        Raises:
            InvalidDocument: There are too many.
        """
        self.characters += characters
        if self.characters > self.limits.max_bytes:
            limit = f"the composed text has more than {self.limits.max_bytes} characters"
            raise self.error(source, origin, "READ-04", limit)

    def count(self, source: Source, origin: int, values: int = 1) -> None:
        """Count visited or created values against the limits.

        Raises:
            InvalidDocument: There are too many.
        """
        self.values += values
        if self.values > self.limits.max_values:
            limit = f"more than {self.limits.max_values} values"
            raise self.error(source, origin, "READ-04", limit)

    def work(self, steps: int, source: Source, origin: int) -> None:
        """Count steps of work against the limits.

        Raises:
            InvalidDocument: There are too many.
        """
        try:
            self.meter.spend(steps)
        except WorkExceeded as error:
            raise self.error(source, origin, "READ-04", str(error)) from None

    def unused_findings(self, names: Iterable[str]) -> Iterator[Finding]:
        """Yield a finding for every unused name."""
        for name in names:
            if name not in self.looked_up:
                hint = did_you_mean(name, self.looked_up)
                if hint is None and self.looked_up:
                    hint = f"there are {', '.join(sorted(self.looked_up)[:10])}"
                yield Finding("READ-13", f"the value {name!r} is not used", "", hint)

    def file(self, path: str, source: Source, origin: int) -> Source:
        """Return a file that a template names, relative to the folder of the template.

        Raises:
            InvalidDocument: The file does not exist or may not be read.
        """
        if PLACEHOLDER.search(path):
            message = f"the path {clip(path)!r} is known only after deployment"
            hint = "give the value of its placeholder with --var"
            raise self.error(source, origin, "READ-18", message, hint)
        if "://" in path:
            message = f"{clip(path)!r} is not a local file"
            hint = "name the file instead of the template, with --var for its placeholders"
            raise self.error(source, origin, "READ-18", message, hint)
        try:
            place = self.place(path, source, origin)
            self.files.add(os.path.realpath(place))
            return open_source(place, limits=self.limits)
        except DocumentNotFound as missing:
            raise self.error(source, origin, "READ-14", str(missing)) from None

    def place(self, path: str, source: Source, origin: int) -> str:
        """Return the path of a file that a template names.

        Raises:
            InvalidDocument: The file is outside the root, the template is not a file, or there can
                be no such path.
        """
        if source.name is None or source.name.startswith("<"):
            raise self.error(
                source,
                origin,
                "READ-14",
                f"the file {path!r} is not read: the template is not a file itself",
            )
        if "\0" in path:
            raise self.error(source, origin, "READ-14", f"the path {clip(path)!r} has a NUL")
        folder = os.path.dirname(source.name)
        full = os.path.join(folder, path)
        root = self.root if self.root is not None else repository_of(folder)
        root = os.path.realpath(root)
        real = os.path.realpath(full)
        if not Path(real).is_relative_to(root):
            raise self.error(
                source,
                origin,
                "READ-14",
                f"the file {path!r} is outside the repository of the template",
                "allow it with --root FOLDER, or name the file itself instead of the template",
            )
        return os.path.normpath(full)

    def error(
        self, source: Source, origin: int, code: str, message: str, hint: str | None = None
    ) -> InvalidDocument:
        """Return the error at an offset of a template."""
        return invalid(source, [Fault(code, message, origin, hint)])


def repository_of(folder: str) -> str:
    """Return the innermost repository of a folder; the folder itself if it has none."""
    here = os.path.realpath(folder)
    while not os.path.exists(os.path.join(here, ".git")):
        parent = os.path.dirname(here)
        if parent == here:
            return folder
        here = parent
    return here


def as_text(value: Json) -> str:
    """Return the text to insert for a value: a string itself, any other value as JSON."""
    return value if type(value) is str else compact(value)


DUPLICATE = "V-TOP-01"
"""Code of duplicate keys. Deployment tools accept them; the last one counts."""


def read_template(source: Source, limits: Limits, schema: Schema) -> tuple[Document, list[Fault]]:
    """Read a template and the faults of its parts.

    Raises:
        InvalidDocument: The text has no value.
    """
    text = source.text
    assert text is not None
    if source.format == "yaml":
        if len(text.encode()) > limits.max_yaml_bytes:
            raise too_large(source.name, limits.max_yaml_bytes, "write large documents as JSON")
        value, span, faults = yaml_text.loads(text, limits, schema)
        if faults and value is None:
            raise invalid(source, faults)
        return Document(value, source, _spans=[span]), faults
    value, faults = json_text.loads(text, limits)
    if not faults:
        return Document(value, source), faults
    if any(fault.code != DUPLICATE for fault in faults):
        raise invalid(source, faults)
    return Document(json.loads(text), source, _spans=[json_text.scan(text, limits)[0]]), faults


def fault_notes(source: Source, faults: Iterable[Fault]) -> Iterator[Note]:
    """Yield a note for each fault outside the definitions."""
    for fault in faults:
        line = source.place(fault.offset).line
        taken = ", the last one counts" if fault.code == DUPLICATE else ""
        yield Note("READ-19", f"line {line} of the template: {fault.message}{taken}", fault.hint)
