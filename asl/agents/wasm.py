"""A WebAssembly module as a program: `python -m asl.agents.wasm SETTINGS MODULE [ARGUMENT...]`.

It has its standard input and output, the folders that the settings (a JSON object with `memory` and
`folders`) name, the variables that the variable `ASL_WASM` holds (as a JSON object: everybody on
the machine sees arguments), and nothing else of the machine.
"""

import os
import sys
from typing import Any

import orjson

__all__ = ["main"]


def main(settings: str, *command: str) -> None:
    """Run the module until it ends."""
    from wasmtime import Engine, ExitTrap, Linker, Module, Store, Trap, WasmtimeError

    given, engine = orjson.loads(settings), Engine()
    store, linker = Store(engine), Linker(engine)
    if given["memory"] is not None:
        store.set_limits(memory_size=given["memory"], memories=1)
    store.set_wasi(_seen(given, command))
    linker.define_wasi()
    try:
        instance = linker.instantiate(store, Module.from_file(engine, command[0]))
        start: Any = instance.exports(store)["_start"]
        start(store)
    except ExitTrap as ended:
        sys.exit(ended.code)
    except KeyError:
        sys.exit(f"{command[0]}: it is no program, as it exports no '_start'")
    except (WasmtimeError, Trap, OSError) as error:
        sys.exit(f"{command[0]}: {error}")


def _seen(given: Any, command: tuple[str, ...]) -> Any:
    """Return what the module sees of the machine."""
    from wasmtime import WasiConfig

    seen = WasiConfig()
    seen.argv = list(command)
    seen.env = list(orjson.loads(os.environ["ASL_WASM"]).items())
    for source, target, writable in given["folders"]:
        seen.preopen_dir(source, target, writable)
    seen.inherit_stdin()
    seen.inherit_stdout()
    seen.inherit_stderr()
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])
