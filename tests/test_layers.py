"""The layers of the package: imports point downwards, and loading it costs little.

The table is that of docs/notes/architecture.md.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "asl"
TOP = {
    *(".ci", ".github", ".gitignore", ".pre-commit-hooks.yaml"),
    *("CHANGELOG.md", "LICENSE", "README.md"),
    *("CONTRIBUTING.md", "SECURITY.md", "mkdocs.yml"),
    *("asl", "benchmarks", "conformance", "deploy", "docs", "examples", "pyproject.toml"),
    *("editors", "schemas", "tests"),
}
LAYERS = {
    "asl.core": 0,
    "asl.expr": 1,
    "asl.sources": 1,
    "asl.program": 2,
    "asl.states": 3,
    "asl.checks": 4,
    "asl.compiler": 4,
    "asl.compose": 4,
    "asl.graphs": 4,
    "asl.engine": 5,
    "asl.agents": 7,
    "asl.buckets": 7,
    "asl.dialects": 7,
    "asl.effects": 6,
    "asl.memories": 7,
    "asl.notifiers": 7,
    "asl.stores": 7,
    "asl.telemetry": 7,
    "asl.aws": 8,
    "asl.documents": 8,
    "asl.bindings": 8,
    "asl.runs": 8,
    "asl.executions": 8,
    "asl.functions": 8,
    "asl.service": 8,
    "asl": 8,
    "asl.conformance": 9,
    "asl.editor": 9,
    "asl.mcp_server": 9,
    "asl.server": 9,
    "asl.temporal": 9,
    "asl.cli": 10,
    "asl.__main__": 10,
}
SIBLINGS = 7
"""The layer whose members do not import each other."""

WORLD = {"asyncio", "time", "random", "uuid", "os", "threading"}
"""What the interpreter reaches through effects only."""

FORBIDDEN = {"pickle", "marshal", "shelve", "dill"}
HEAVY = {
    "asyncio",
    "jsonata",
    "jsonschema",
    "ruamel",
    "re2",
    "rich",
    "pydantic",
    "click",
    "tomllib",
}
MAY_BE_HEAVY = {
    "asl.agents.child_process": {"asyncio"},
    "asl.cli.serve": {"asyncio"},
    "asl.cli.service_settings": {"pydantic"},
    "asl.cli.worker": {"asyncio"},
    "asl.functions": {"asyncio"},
    **{
        f"asl.service.{name}": {"asyncio"}
        for name in (
            *("activities", "activity_polls", "client", "definitions", "executions", "http"),
            "history_pages",
            "retention",
        )
    },
    "asl.editor": {"asyncio"},
    "asl.mcp_server": {"asyncio"},
    "asl.cli.mcp": {"asyncio"},
    "asl.temporal": {"asyncio"},
    "asl.server": {"asyncio", "pydantic", "tomllib"},
    "asl.executions.runner": {"asyncio"},
    "asl.executions.scheduler": {"asyncio"},
    "asl.stores.group_commit": {"asyncio"},
    "asl.cli": {"click"},
    "asl.expr.jsonata.library": {"jsonata"},
}
"""`program` is only reached from a running event loop, `library` from a query."""

POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
"""Modules that Windows does not have."""
POSIX_NAMES = {
    "os": {"fork", "getuid", "geteuid", "killpg", "setsid", "chown", "pidfd_open"},
    "select": {"poll", "epoll", "kqueue", "POLLIN"},
    "signal": {"SIGKILL", "SIGHUP", "SIGALRM", "pidfd_send_signal"},
    "socket": {"AF_UNIX"},
}
"""Names that their modules do not have on Windows."""

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
every_row = pytest.mark.parametrize("row", LAYERS)


def tree(module: str) -> ast.Module:
    return parsed(MODULES[module])[1]


def imports(node: ast.AST, module: str) -> Iterator[str]:
    """Yield the modules that are imported below a node, those for type checking included."""
    package = MODULES[module].name == "__init__.py"
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            base = each.module or ""
            if each.level:
                parents = module.split(".")[: (1 if package else 0) - each.level or None]
                base = ".".join([*parents, base]).rstrip(".")
            for alias in each.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in MODULES else base


def at_top(module: str) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, not those for type checking."""
    stack: list[ast.stmt] = list(tree(module).body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            stack += statement.orelse
            continue
        yield statement
        for field in ("body", "orelse", "finalbody"):
            stack += [each for each in getattr(statement, field, []) if isinstance(each, ast.stmt)]


def member(module: str) -> str:
    """Return the row of the table that a module of ours belongs to."""
    return max(
        (row for row in LAYERS if module == row or (module.startswith(f"{row}.") and row != "asl")),
        key=len,
    )


def modules(row: str) -> list[str]:
    """Return the modules that belong to a row of the table."""
    return [module for module in MODULES if member(module) == row]


def roots(module: str) -> set[str]:
    """Return the packages from which a module imports, anywhere in it."""
    return {name.split(".")[0] for name in imports(tree(module), module)}


def test_a_module_has_a_layer() -> None:
    """Every module belongs to a row of the table, and every row has one."""
    assert {member(module) for module in MODULES} == LAYERS.keys()


@every_row
def test_imports_point_downwards(row: str) -> None:
    """A module imports from its own layer and those below, and from no sibling of layer 6."""
    for module in modules(row):
        for imported in imports(tree(module), module):
            if imported.split(".")[0] != "asl":
                continue
            there = member(imported)
            assert LAYERS[there] <= LAYERS[row], f"{module} imports {imported}"
            if LAYERS[row] == SIBLINGS:
                assert there == row or LAYERS[there] < SIBLINGS, f"{module} imports {imported}"


def test_the_engine_knows_no_world() -> None:
    """The interpreter imports no clock, no event loop, no randomness and no system."""
    for module in modules("asl.engine"):
        assert WORLD & roots(module) == set(), module


def unguarded(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run with the module, but those in a `try`."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If):
            yield from unguarded(statement.body + statement.orelse)


@every_row
def test_no_module_needs_posix_to_be_imported(row: str) -> None:
    """What Windows does not have is imported by the function that needs it, or in a `try`."""
    for module in modules(row):
        for each in unguarded(tree(module).body):
            names = {alias.name for alias in each.names}
            source = each.module or "" if isinstance(each, ast.ImportFrom) else ""
            missing = POSIX_NAMES.get(source, POSIX if not source else set())
            assert not names & missing, (module, each.lineno)
            assert source not in POSIX, (module, each.lineno)


@every_row
def test_nothing_from_a_document_is_executed(row: str) -> None:
    """No module imports a way to run data, or calls eval, exec or compile."""
    for module in modules(row):
        assert FORBIDDEN & roots(module) == set(), module
        calls = (node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call))
        names = {function.id for function in calls if isinstance(function, ast.Name)}
        assert names & {"eval", "exec", "__import__"} == set(), module


@every_row
def test_heavy_libraries_are_imported_where_they_are_used(row: str) -> None:
    """No module loads a heavy library when it is imported."""
    for module in modules(row):
        allowed = {
            name
            for start, names in MAY_BE_HEAVY.items()
            if module.startswith(start)
            for name in names
        }
        loaded = {
            name.split(".")[0]
            for statement in at_top(module)
            if isinstance(statement, ast.Import | ast.ImportFrom)
            for name in imports(statement, module)
        }
        assert loaded & HEAVY <= allowed, module


def test_nothing_strays_into_the_project() -> None:
    """The top of the project has the folders and files of its layout, and no trace of a trial."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no checkout")
    assert {name.split("/")[0] for name in listed.stdout.splitlines()} <= TOP


def test_the_table_is_the_documented_one() -> None:
    """docs/notes/architecture.md has the same table."""
    text = (ROOT / "docs" / "notes" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^(\d+) +(asl.*)$", text, re.MULTILINE)
    assert {name: int(layer) for layer, names in rows for name in names.split()} == LAYERS


# Import budgets ----------------------------------------------------------------------------------

FOREIGN_NAMES = ("codemie", "contenox", "flujo")
FOREIGN = [f"asl.dialects.{name}" for name in ("amazon", *FOREIGN_NAMES)]

BUDGETS = {
    "import asl": (
        ["-c", "import asl"],
        {"asyncio", "jsonschema", "click", "ruamel", "pydantic", "rich", "orjson"},
    ),
    "asl run hello.asl.json": (
        ["-m", "asl", "run", "hello.asl.json"],
        {
            *("asyncio", "rich", "ruamel", "pydantic", "re2", "jsonschema", "asl.expr.jsonata"),
            *("asl.dialects.registry", "asl.dialects.base", *FOREIGN),
        },
    ),
    "asl check hello.asl.json": (
        ["-m", "asl", "check", "hello.asl.json"],
        {
            *("asyncio", "ruamel", "pydantic", "re2", "jsonschema", "asl.expr.jsonata"),
            *("asl.agents.file", "asl.agents.registry", "asl.engine.agent", "asl.executions"),
            *FOREIGN,
        },
    ),
}


@pytest.mark.parametrize("case", BUDGETS)
def test_import_budget(case: str, tmp_path: Path) -> None:
    """Importing the package and running a plain document load nothing that they do not need."""
    arguments, unwanted = BUDGETS[case]
    document = '{"StartAt": "Hi", "States": {"Hi": {"Type": "Pass", "End": true}}}'
    (tmp_path / "hello.asl.json").write_text(document, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    traced = [line.split("|")[-1].strip() for line in done.stderr.splitlines() if "|" in line]
    assert "asl" in traced
    found = {each for each in unwanted for name in traced if f"{name}.".startswith(f"{each}.")}
    assert found == set()


@pytest.mark.parametrize("dialect", FOREIGN_NAMES)
def test_functions_of_a_dialect_need_no_reader_or_writer(dialect: str) -> None:
    """The run of a converted document loads nothing else of its dialect."""
    own, allowed = f"asl.dialects.{dialect}.functions", ("asl.core", "asl.expr")
    found = [each for each in MODULES if f"{each}.".startswith(f"{own}.")]
    assert len(found) > 4
    for module in found:
        for imported in imports(tree(module), module):
            if imported.split(".")[0] == "asl":
                assert imported.startswith((own, *allowed)), f"{module} imports {imported}"


OF_DIALECTS = re.compile(r"codemie|contenox|flujo|\b(?:CM|CX|FL)-[A-Z]", re.IGNORECASE)
"""Names of dialects, and their codes."""
ROWS = {f"asl.dialects.registry:{name}" for name in FOREIGN_NAMES}


def test_the_core_names_no_dialect() -> None:
    """Everything of a dialect is in its folder; only the registry has a row for each."""
    found = set()
    for module, path in MODULES.items():
        if module.startswith(tuple(f"asl.dialects.{name}" for name in FOREIGN_NAMES)):
            continue
        text = path.read_text(encoding="utf-8")
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        if OF_DIALECTS.search(text):
            found |= {
                f"{module}:{node.value.rpartition('.')[2].partition(':')[0]}"
                for node in ast.walk(tree(module))
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docs
                and OF_DIALECTS.search(node.value)
            }
    assert found == ROWS
    for name in ("codes.toml", "failures.toml"):
        assert not OF_DIALECTS.search((PACKAGE / "core" / name).read_text(encoding="utf-8"))


# Edges between modules

LATE = {
    "asl.agents": "rows of the table of agent kinds; each brings its library",
    "asl.agents.aws_lambda": "functions that are called as handlers of AWS Lambda",
    "asl.agents.graph_agent": "agents of LangGraph",
    "asl.agents.http": "a kind of agents: httpx2",
    "asl.agents.lambda_service": "the integration lambda:invoke",
    "asl.agents.mcp": "a kind of agents: mcp",
    "asl.agents.model": "a kind of agents: pydantic-ai",
    "asl.agents.openai_agent": "agents of the OpenAI Agents SDK",
    "asl.agents.process": "a kind of agents: programs",
    "asl.agents.child_process": "asyncio: needed where a program is started",
    "asl.agents.pydantic_agent": "agents of pydantic-ai",
    "asl.agents.sandbox": "sandboxes, which are programs",
    "asl.aws": "calls of AWS's services, which are off by default",
    "asl.buckets": "rows of a table by the form of a location",
    "asl.buckets.object_store": "fsspec",
    "asl.checks": "jsonschema and the models of services, which a run of a checked document lacks",
    "asl.checks.aws": "the profile aws",
    "asl.checks.jsonata_rules": "the query language JSONata",
    "asl.cli": "rows of the table of commands",
    "asl.cli.progress": "what a terminal shows of a run that takes a moment",
    "asl.cli.service_settings": "pydantic, where a project has settings of a service",
    "asl.cli.trace": "the option --trace",
    "asl.compiler.include": "Include, which composes documents while it runs",
    "asl.compiler.jsonata": "JSONata, which a document in JSONPath lacks",
    "asl.compose.expansion": "documents that are composed of parts",
    "asl.compose.imports": "documents with imports",
    "asl.conformance": "the runner of suites, which pytest loads as a plugin",
    "asl.conformance.pytest_items": "what pytest loads where it meets a suite",
    "asl.core.automaton": "an engine of regular expressions, where google-re2 is not installed",
    "asl.core.render": "what is shown of reports, where there is something to report",
    "asl.core.yaml_text": "the reader of YAML",
    "asl.dialects": "rows of the table of dialects",
    **{
        f"asl.dialects.{name}.{part}": "what the row of a dialect does with a document"
        for name in ("amazon", "codemie", "contenox", "flujo")
        for part in (
            *("agents", "functions", "meaning_losses", "meanings", "plain", "portable"),
            *("reader", "round_trip", "schema", "writing"),
        )
    },
    "asl.dialects.registry": "documents in other languages, which those in ours need not know",
    "asl.editor": "pygls, of the extra editor",
    "asl.effects.journaled": "the effects of an execution that is kept, which a plain run lacks",
    "asl.effects.tools": "the tools of agents, with sockets and threads",
    "asl.engine.map_run": "distributed Maps",
    "asl.executions": "executions in a store, which a run in memory lacks",
    "asl.executions.runner": "asyncio: needed by those who run what is due",
    "asl.server.access.routes": "jinja2, which only the pages need",
    "asl.server.access.secret": "itsdangerous, of the extra server",
    "asl.server.access.users": "starlette, of the extra server",
    "asl.server.api.application": "fastapi, which only the REST interface needs",
    "asl.server.pages.application": "jinja2, which only the pages need",
    "asl.server.access.users_file": "pydantic, where there are users",
    "asl.server.local": "starlette and cronsim, of the extra server",
    "asl.server.monitoring": "the same",
    "asl.server.projects": "the same",
    "asl.server.schedules": "the same",
    "asl.server.webhooks": "the same",
    "asl.server.serving": "fastapi and uvicorn, of the extra server",
    "asl.expr.jsonata": "the query language, which a document in JSONPath lacks",
    "asl.expr.jsonata.library": "the library jsonata",
    "asl.functions": "asyncio: needed where functions of a template are bound",
    "asl.graphs": "drawings and plans",
    "asl.mcp_server": "mcp, of the extra of this name",
    "asl.memories": "rows of a table by the form of a location; each brings its library",
    "asl.memories.dynamodb": "boto3",
    "asl.memories.redis": "redis",
    "asl.memories.sqlite": "sqlite3",
    "asl.notifiers": "rows of a table by the form of a location",
    "asl.service.connections": "httptools, which uvicorn uses where it is installed",
    "asl.sources": "rows of a table of kinds of templates; ruamel.yaml",
    "asl.sources.templates": "documents with placeholders, and templates that hold some",
    "asl.sources.terraform": "a reader of HCL, with the functions of the language",
    "asl.states.distributed": "distributed Maps, and the readers of their data",
    "asl.stores": "rows of a table by the form of a location; sqlite3",
    "asl.stores.group_commit": "asyncio: needed where an event loop is running",
    "asl.stores.sqlite": "sqlite3",
    "asl.telemetry": "opentelemetry",
}
"""What may be imported within functions, and for type checking, from outside of it, and what it
brings with it."""

HIDDEN = {"type checking": 0, "in functions": 0}
"""Imports of modules of ours that are not at the top of a module, by where they are: at most so
many. They hide how the modules depend on each other, and may only become fewer. Front doors may
name for type checking what they load on demand; what `LATE` names is not counted."""

FRONT_DOORS = {"asl", "asl.agents", "asl.conformance"}
"""Packages whose names are loaded when they are first used."""


def is_late(imported: str, module: str) -> bool:
    """Return whether this module may load the other one late."""
    return any(
        f"{imported}.".startswith(f"{name}.") and not f"{module}.".startswith(f"{name}.")
        for name in LATE
    )


def edges_at_top(module: str) -> set[str]:
    """Return the modules of ours that a module imports when it is imported."""
    body = [each for each in at_top(module) if isinstance(each, ast.Import | ast.ImportFrom)]
    found = imports(ast.Module(body=[*body], type_ignores=[]), module)
    return {each for each in found if each in MODULES and each != module}


def test_modules_do_not_import_each_other() -> None:
    """The imports at the top of the modules have no cycle."""
    edges = {module: edges_at_top(module) for module in MODULES}
    while edges:
        ends = {module for module, imported in edges.items() if not imported & edges.keys()}
        assert ends, f"a cycle: {sorted(edges)}"
        edges = {module: imported for module, imported in edges.items() if module not in ends}


def test_hidden_imports_become_fewer() -> None:
    """Those for type checking, and those within functions."""
    counts = dict.fromkeys(HIDDEN, 0)
    for module in MODULES:
        for_types = [
            each
            for block in ast.walk(tree(module))
            if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
            for each in imports(ast.Module(block.body, []), module)
            if each in MODULES and module not in FRONT_DOORS and not is_late(each, module)
        ]
        body = [each for each in at_top(module) if isinstance(each, ast.Import | ast.ImportFrom)]
        hidden = Counter(each for each in imports(tree(module), module) if each in MODULES)
        hidden -= Counter(imports(ast.Module([*body], []), module)) + Counter(for_types)
        counts["type checking"] += len(for_types)
        counts["in functions"] += sum(
            count
            for each, count in hidden.items()
            if not is_late(each, module) and module not in FRONT_DOORS
        )
    assert all(counts[where] <= most for where, most in HIDDEN.items()), counts


# Types

UNTYPED = {"asl.effects": 35, "asl.engine": 19, "asl.executions": 1}
"""Attributes, parameters and results of the type `Any`, by package: at most so many. A value of the
workflow may have it, a protocol or a class of ours has a type; the numbers only become smaller."""


@pytest.mark.parametrize("package", UNTYPED)
def test_any_becomes_rarer(package: str) -> None:
    count = 0
    for module in modules(package):
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found = node.returns
            elif isinstance(node, ast.AnnAssign | ast.arg):
                found = node.annotation
            else:
                continue
            count += found is not None and ast.unparse(found) in ("Any", "Any | None")
    assert count <= UNTYPED[package]


# Effects

COMPOSED = (
    *("agent_caller", "budget_gate", "fork", "local", "persistence", "runtime", "service_agent"),
    *("journaled.callbacks", "journaled.calls", "journaled.children", "journaled.effects"),
    *("journaled.execution", "journaled.requests", "journaled.results"),
    *("tools.budgets", "tools.dispatcher", "tools.hooks", "tools.policies", "tools.tool_log"),
)
"""The modules of `asl.effects` whose classes perform effects, or know of those who do."""


def test_effects_are_composed() -> None:
    """No class that performs effects is made by inheritance, and none is cast to another."""
    for name in COMPOSED:
        for node in ast.walk(tree(f"asl.effects.{name}")):
            if isinstance(node, ast.ClassDef):
                assert {ast.unparse(base) for base in node.bases} <= OUTSIDE, node.name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "cast", f"{name}: line {node.lineno}"


OUTSIDE = {"Protocol", "AslError", "NamedTuple", "Agent", "Performer"}


def test_the_interpreter_asks_for_eight_things() -> None:
    protocol = next(
        node
        for node in ast.walk(tree("asl.states.effects"))
        if isinstance(node, ast.ClassDef) and node.name == "Effects"
    )
    methods = [each for each in protocol.body if isinstance(each, ast.FunctionDef)]
    assert sum(not each.decorator_list for each in methods) == 8
