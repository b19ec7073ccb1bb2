"""Loading of documents; resolution of the `document` and `profile` arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.core.profile import PROFILES, Profile, profile_named
from asl.core.values import Json

__all__ = ["check_names", "load", "resolve_document", "resolve_profile"]


def load(
    source: Loadable,
    *,
    name: str | None = None,
    format: str | None = None,
    dialect: str | None = None,
    reading: Mapping[str, Any] | None = None,
    resource: str | None = None,
    variables: Mapping[str, Json] | None = None,
    root: str | os.PathLike[str] | None = None,
    imports: Callable[[str], Loadable] | Mapping[str, Loadable] | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> Document:
    """Read a document and everything that it imports.

    Args:
        source: Path, text, bytes, dict or open file. A string that begins with `{` or has several
            lines is text, any other a path.
        name: Name of the workflow; by default that of the file.
        format: `"json"` or `"yaml"`; by default that of the file's name or content.
        dialect: Name of the dialect; by default detected by shape.
        reading: Options of the reader of that dialect.
        resource: Name of the state machine in a SAM or CloudFormation template or a Terraform
            file; needed if it has several.
        variables: Values of placeholders (`${Name}`) and of template parameters.
        root: Folder that imports and files of templates must be in; by default that of the
            document.
        imports: Provider of other imports (URLs, registry entries) by source: a function or a
            mapping.
        parameters: Values of the `Parameters` of a document that runs by itself.

    Returns:
        The document. Errors in imports are reported by `asl.check`.

    Raises:
        InvalidDocument: The document cannot be read; the report has every fault and its place.
        DocumentNotFound: No file exists at the path.
        AslError: The state machine is ambiguous, a parameter is not declared, or an argument is
            invalid.
    """
    from asl.dialects import load as load_document

    values: dict[str, Any] = {"variables": variables, "parameters": parameters}
    for named, given in values.items():
        if not (given is None or isinstance(given, Mapping)):
            found = type(given).__name__
            raise AslError(f"'{named}' must be a mapping from names to values, got {found}")
        check_names(**{named: given})
    return load_document(
        source,
        name=name,
        format=format,
        dialect=dialect,
        reading=reading,
        resource=resource,
        variables=variables or {},
        root=root,
        imports=imports,
        parameters=parameters,
    )


def resolve_document(what: Document | Loadable) -> Document:
    """Return a document unchanged; load anything else."""
    return what if isinstance(what, Document) else load(what)


def resolve_profile(profile: str | Profile) -> Profile:
    """Return the profile with this name; raise AslError for an unknown one."""
    if isinstance(profile, Profile):
        return profile
    found = profile_named(profile) if isinstance(profile, str) else None
    if found is None:
        raise AslError(f"unknown profile {profile!r}; there are {', '.join(PROFILES)}")
    return found


def check_names(**given: Collection[str] | None) -> None:
    """Raise AslError for an argument that is not a collection of names, such as a single string."""
    for what, names in given.items():
        if names is None:
            continue
        if isinstance(names, str) or not isinstance(names, Collection):
            raise AslError(f"'{what}' must be a list of names, got {type(names).__name__}")
        for name in names:
            if not isinstance(name, str):
                raise AslError(f"the names in '{what}' must be text, got {type(name).__name__}")
