"""Reading of documents, and of what stands for one."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from asl.core.document import Document, Loadable
from asl.core.errors import AslError
from asl.core.profile import PROFILES, Profile, profile_named
from asl.core.values import Json

__all__ = ["check_names", "document_of", "load", "profile_of"]


def load(
    what: Loadable,
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
    """Read a document from a path, text, bytes, dict or open file, with all that it imports.

    A string that begins with `{` or has several lines is text, any other a path. A workflow in
    another language is known by its shape, or by the name of its `dialect`; `reading` are the
    options with which that is read. In a template of SAM or
    CloudFormation and in a Terraform file, `resource` names the state machine; it may be left out
    where there is only one. `variables` are the values of placeholders (`${Name}`) and of
    parameters there.

    Files that a document imports, or that a template names, are read below its own folder, or below
    `root`. `imports` provides everything else by its source: what a URL or an entry of a registry
    stands for. `parameters` are the values for a document with `Parameters` that runs by itself.

    Raises InvalidDocument (with every fault and its place), DocumentNotFound, and AslError where it
    is not clear which state machine is meant or a parameter is not declared. What is wrong with an
    import is found by `check`.
    """
    from asl.dialects import load as load_document

    values: dict[str, Any] = {"variables": variables, "parameters": parameters}
    for named, given in values.items():
        if not (given is None or isinstance(given, Mapping)):
            found = type(given).__name__
            raise AslError(f"{named} are a mapping from names to values, not {found}")
        check_names(**{named: given})
    return load_document(
        what,
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


def document_of(what: Document | Loadable) -> Document:
    """Return a document as it is, and read anything else."""
    return what if isinstance(what, Document) else load(what)


def profile_of(profile: str | Profile) -> Profile:
    """Return the profile of a name; raises AslError for one that does not exist."""
    if isinstance(profile, Profile):
        return profile
    found = profile_named(profile) if isinstance(profile, str) else None
    if found is None:
        raise AslError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    return found


def check_names(**given: Collection[str] | None) -> None:
    """Raise AslError for what is no collection of names: a text would be one of its letters."""
    for what, names in given.items():
        if names is None:
            continue
        if isinstance(names, str) or not isinstance(names, Collection):
            raise AslError(f"{what} are a list of names, not {type(names).__name__}")
        for name in names:
            if not isinstance(name, str):
                raise AslError(f"{what} are names, not {type(name).__name__}")
