"""Checkpoints as JSON files in a folder."""

from __future__ import annotations

import os

from asl.core.private_files import make_private_folder, open_replacement
from asl.core.values import Json, encode

__all__ = ["CheckpointFolder", "state_folder"]

MAX_NAME = 200
"""Maximum length of a file's name; longer ones are shortened."""


def state_folder() -> str:
    """Return the folder for state of the user's programs (`$XDG_STATE_HOME/asl`)."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "asl")


class CheckpointFolder:
    """A storage of checkpoints (`asl.engine.checkpoints.Storage`), created with the first one.

    Args:
        path: The folder; None for one in the user's state folder.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = path

    @property
    def path(self) -> str:
        """The folder of the files; computed on access, which is rare."""
        if self._path is None:
            return os.path.join(state_folder(), "checkpoints")
        return os.fspath(self._path)

    def __setitem__(self, id: str, checkpoint: Json) -> None:
        """Write a checkpoint; a file of this name is replaced atomically."""
        make_private_folder(self.path)
        with open_replacement(self._file(id), private=True) as stream:
            stream.write(encode(checkpoint))

    def __getitem__(self, id: str) -> Json:
        """Read a checkpoint.

        Raises:
            KeyError: There is none of this id.
            ValueError, RecursionError: The file is damaged.
            OSError: The file cannot be read.
        """
        import json

        try:
            with open(self._file(id), "rb") as stream:
                return json.load(stream)
        except FileNotFoundError:
            raise KeyError(id) from None

    def __delitem__(self, id: str) -> None:
        """Delete a checkpoint.

        Raises:
            KeyError: There is none of this id.
        """
        try:
            os.unlink(self._file(id))
        except FileNotFoundError:
            raise KeyError(id) from None

    def _file(self, id: str) -> str:
        from hashlib import sha256
        from urllib.parse import quote

        name = quote(id, safe=" ")
        if len(name) > MAX_NAME:
            name = f"{name[:MAX_NAME]}-{sha256(id.encode()).hexdigest()[:16]}"
        return os.path.join(self.path, f"{name}.json")
