"""The import graph: a layer imports only what lies below it, nothing imports in a circle, and no function imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

BELOW = {
    "errors": set[str](),
    "messages": set[str](),
    "media": {"errors"},
    "hooks": {"errors", "messages", "media"},
    "models": {"errors", "messages", "media", "hooks"},
    "runtimes": {"errors", "messages", "media", "hooks", "models"},
    "replica": {"errors", "messages", "media", "hooks", "models", "runtimes"},
    # The wire format is the replica's; of everything else that a replica is made of, the serving side knows nothing.
    "serving": {"errors", "messages", "models.signature", "replica.wire"},
    "cluster": {"errors", "messages", "models", "replica.wire", "replica.spec", "serving"},
    "http": {"errors", "messages", "media", "models", "replica.wire", "serving", "cluster"},
    "images": {"errors", "models"},
    "client": {"errors"},
    "check": {"errors"},  # it plays a client, of any server
    "cli": {"errors", "messages", "models", "serving", "cluster", "http", "images", "client", "check"},
    "testing": {"errors", "messages", "media", "hooks", "models", "replica"},
    "": {"errors", "hooks"},  # the package itself: what a hook's author imports
}
FORBIDDEN_BELOW_HTTP = {"uvicorn", "starlette", "httptools"}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted((SOURCE / "forecastle").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


GRAPH = {name: set(imports(ast.parse(path.read_text()))) for name, path in MODULES.items()}


def inside(name: str) -> str:
    return name.partition(".")[2]


def layer(name: str) -> str:
    return inside(name).partition(".")[0]


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_a_module_imports_only_from_its_own_layer_and_those_below(name: str) -> None:
    allowed = BELOW[layer(name)]
    for target in GRAPH[name]:
        if target in MODULES and target != "forecastle" and layer(target) != layer(name):
            assert any(inside(target) == a or inside(target).startswith(f"{a}.") for a in allowed), target


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_only_the_http_layer_and_the_command_line_know_a_web_framework(name: str) -> None:
    if layer(name) not in {"http", "cli"}:
        assert not {target.partition(".")[0] for target in GRAPH[name]} & FORBIDDEN_BELOW_HTTP


def test_nothing_imports_in_a_circle() -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path, name))
        if name not in done:
            for target in sorted(GRAPH[name] & MODULES.keys()):
                visit(target, (*path, name))
            done.add(name)

    for name in sorted(GRAPH):
        visit(name, ())


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_function_imports(name: str) -> None:
    tree = ast.parse(MODULES[name].read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lazy = [node for f in functions for node in ast.walk(f) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not lazy, f"{name} imports inside a function at line {lazy[0].lineno}"
