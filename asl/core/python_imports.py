"""Import Python objects by a user's name: `module:name`, or `folder/file.py:name`.

An installed module is imported as usual. Any other module is looked for in the folders that the
caller names. It is loaded under a private name, and only modules of the same folder can import it.
So no file of a folder can replace a library, and two folders may have modules of the same name. The
folders are never on `sys.path`.
"""

import ast
import builtins
import importlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from asl.core.diagnostics import did_you_mean
from asl.core.errors import AslError
from asl.core.lazy import lazy_pattern

__all__ = [
    "MissingModule",
    "bracketed_hint",
    "check_import",
    "code_folders",
    "import_object",
    "is_file_form",
    "probable",
]

_NAME = lazy_pattern(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
PRIVATE = "asl_modules_"
"""Prefix of the names of private packages."""


def import_object(name: str, folders: Iterable[Path] = ()) -> Any:
    """Import the object of `module:name` or `file.py:name`.

    Args:
        name: The module, or the path of a file, and a name in it; both may have dots.
        folders: Folders with modules that are not installed, and the base of relative file paths;
            the current folder by default.

    Raises:
        AslError: There is no such module, file or name, or its import fails.
    """
    module_name, attribute = _parts(name)
    try:
        if is_file_form(name):
            file = _file(name, module_name, folders)
            module = _folder(str(file.parent)).load(file.stem)
        else:
            module = _module(module_name, folders)
    except ModuleNotFoundError as error:
        missing = _public(str(error.name))
        if error.name is None or not f"{module_name}.".startswith(f"{missing}."):
            raise _unimportable(name, error) from error  # a module that the user's own one needs
        text = f"cannot import {name!r}: there is no module {missing!r}{bracketed_hint(name)}"
        raise AslError(text) from None
    except AslError:
        raise
    except (Exception, SystemExit) as error:  # foreign code runs while it is imported
        raise _unimportable(name, error) from error
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise _nameless(name, part, dir(found))
        found = getattr(found, part)
    return found


class MissingModule(AslError):
    """There is no module of this name here; it may exist where the name is used."""


def check_import(name: str, folders: Iterable[Path] = ()) -> None:
    """Check a name for `import_object`, as far as possible without running code.

    Args:
        name: The name to import.
        folders: Folders with modules and files.

    Raises:
        MissingModule: There is no such module.
        AslError: There is no such file or name, or the file is not Python.
    """
    module_name, attribute = _parts(name)
    if is_file_form(name):
        file = _file(name, module_name, folders)
    else:
        located = _located(name, module_name, folders)
        if located is None or located.suffix != ".py":
            return
        file = located
    try:
        defined = _defined(file)
    except (SyntaxError, ValueError) as error:  # ValueError: a null character
        raise _unimportable(name, error) from None
    top = attribute.partition(".")[0]
    if defined is not None and top not in defined:
        raise _nameless(name, top, defined)


def code_folders() -> list[str]:
    """Return the folders of the imported modules."""
    return [folder.path for folder in _FOLDERS.values()]


def is_file_form(name: str) -> bool:
    """Return whether a name consists of the path of a file and a name in it."""
    module = name.rpartition(":")[0]
    return module.endswith(".py") and bool(_NAME.fullmatch(name.rpartition(":")[2]))


def probable(name: str) -> str | None:
    """Return the correct form of a name written with dots or a folder alone, else None."""
    module, colon, attribute = name.rpartition(":")
    if not colon:
        module, _, attribute = name.rpartition(".")
    if not (module and _NAME.fullmatch(attribute)):
        return None
    if "/" in module:
        form = f"{module}.py:{attribute}"
    elif _NAME.fullmatch(module.removesuffix(".py")):
        form = f"{module.removesuffix('.py')}:{attribute}"
    else:
        return None
    return None if form == name or attribute == "py" else form


def bracketed_hint(name: str) -> str:
    """Return the hint at the correct form of a name in brackets, or an empty text."""
    form = probable(name)
    return "" if form is None else f" (did you mean {form!r}?)"


def _parts(name: str) -> tuple[str, str]:
    """Return the module or file, and the name in it; raises AslError for another form."""
    if is_file_form(name):
        module, _, attribute = name.rpartition(":")
        return module, attribute
    module, _, attribute = name.partition(":")
    if not _NAME.fullmatch(module) or not attribute:
        text = f"{name!r} is not of the form 'module:function' or 'folder/file.py:function'"
        raise AslError(text + bracketed_hint(name))
    return module, attribute


def _file(name: str, path: str, folders: Iterable[Path]) -> Path:
    """Return the file at a path that begins in one of the folders; raises AslError."""
    places = [folder / path for folder in folders or (Path(),)]
    file = next((each for each in places if each.is_file()), None)
    if file is None:
        raise AslError(f"cannot import {name!r}: there is no file {str(places[0])!r}")
    if "." in file.stem:
        text = f"cannot import {name!r}: a module has no dot in its name; rename the file"
        raise AslError(text)
    return file.resolve()


def _module(name: str, folders: Iterable[Path]) -> ModuleType:
    """Import an installed module, else that of the first folder with one."""
    if name not in sys.modules and _spec(name) is None:
        places = [str(folder.resolve()) for folder in folders]
        for wanted in (name, name.partition(".")[0]):
            for place in places:
                if _spec(wanted, place) is not None:
                    return _folder(place).load(name)
    return importlib.import_module(name)


def _spec(name: str, folder: str | None = None) -> ModuleSpec | None:
    """Find a module, in a folder or installed, without importing its packages."""
    top, *rest = name.split(".")
    if folder is not None:
        spec = PathFinder.find_spec(top, [folder])
    else:
        spec = sys.modules[top].__spec__ if top in sys.modules else find_spec(top)
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
    return spec


def _located(name: str, module: str, folders: Iterable[Path]) -> Path | None:
    """Return the file of a module, None without a file; raises MissingModule."""
    spec = _spec(module)
    for folder in folders:
        spec = spec or _spec(module, str(folder.resolve()))
    if spec is None:
        if module in sys.modules:
            return None
        raise MissingModule(
            f"cannot import {name!r}: there is no module {module!r}{bracketed_hint(name)}"
        )
    return Path(spec.origin) if spec.has_location and spec.origin else None


def _defined(file: Path) -> set[str] | None:
    """Return the top-level names of a module, None where they cannot be read from the source."""
    names: set[str] = set()
    rest: list[ast.AST] = list(ast.parse(file.read_bytes(), str(file)).body)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            rest += ast.iter_child_nodes(node)
    if names & {"*", "__getattr__"} or file.name == "__init__.py":
        return None  # a package has its modules, too
    return names


class _Folder:
    """The modules of one folder: a private package within which they import each other."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.package = f"{PRIVATE}{len(_FOLDERS) + 1}"
        self.builtins: Mapping[str, Any] = {**vars(builtins), "__import__": self.import_}
        """What the modules of the folder have for builtins."""

    def load(self, name: str) -> ModuleType:
        """Import a module of the folder by its name."""
        return importlib.import_module(f"{self.package}.{name}")

    def has(self, top: str) -> bool:
        """Return whether a top-level name is a module of the folder and not installed."""
        if f"{self.package}.{top}" in sys.modules:
            return True
        spec = PathFinder.find_spec(top, [self.path])
        if spec is None or _is_installed(top):
            return False
        return spec.loader is not None or find_spec(top) is None  # a plain folder comes last

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Do what `import` does in a module of the folder; as `builtins.__import__`."""
        top = name.partition(".")[0]
        if level or not self.has(top):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = self.load(name)
        if not fromlist:
            return sys.modules[f"{self.package}.{top}"]
        return builtins.__import__(module.__name__, globals, locals, fromlist, 0)


class _Loader(SourceFileLoader):
    """Loads a module of a folder with the folder's own `import`."""

    def __init__(self, name: str, path: str, folder: _Folder) -> None:
        super().__init__(name, path)
        self.folder = folder

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self.folder.builtins
        super().exec_module(module)


class _Finder:
    """Finds the modules in the packages of folders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = _FOLDERS.get(fullname.partition(".")[0])
        if folder is None:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, folder)
        return spec


_FOLDERS: dict[str, _Folder] = {}
"""The folders by the names of their packages."""
_FINDER = _Finder()


@cache
def _folder(path: str) -> _Folder:
    """Return the modules of a folder; its package is made on first use."""
    folder = _Folder(path)
    _FOLDERS[folder.package] = folder
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    package = ModuleType(folder.package)
    package.__path__ = [path]
    sys.modules[folder.package] = package
    return folder


@cache
def _is_installed(top: str) -> bool:
    """Return whether a module belongs to Python or to an installed distribution."""
    if top in sys.stdlib_module_names:
        return True
    places = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    return PathFinder.find_spec(top, places) is not None


def _public(text: str) -> str:
    """Return a text without the names of private packages."""
    return re.sub(rf"{PRIVATE}\d+\.", "", text)


def _nameless(name: str, part: str, names: Iterable[str]) -> AslError:
    module, attribute = _parts(name)
    hint = did_you_mean(part, [each for each in names if not each.startswith("_")])
    if is_file_form(name):
        kind = "file"
    elif _is_installed(module.partition(".")[0]):
        kind, file = "installed module", f"{module.replace('.', '/')}.py"
        hint = hint or f"a file of yours is {file}:{attribute}"
    else:
        kind = "module"
    return AslError(f"{kind} {module!r} has no {attribute!r}" + (f" ({hint})" if hint else ""))


def _unimportable(name: str, error: BaseException) -> AslError:
    said = _public(str(error))
    text = f"cannot import {name!r}: {type(error).__name__}: {said}{_where(error)}"
    if isinstance(error, SystemExit):
        text += "; put what ends the program under: if __name__ == '__main__'"
    return AslError(text)


def _where(error: BaseException) -> str:
    """Return the place in the user's own code where an import failed."""
    if isinstance(error, SyntaxError) or error.__traceback__ is None:
        return ""  # its text names file and line
    from traceback import extract_tb

    own = (__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
    frames = [each for each in extract_tb(error.__traceback__) if each.filename not in own]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
