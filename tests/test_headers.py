"""The header of a module names what it holds, with the arguments that it takes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "qkdemo").rglob("*.py"))
_NAMED = re.compile(r"`((?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*)\(([^`]*)\)`")


def headlines(header: str) -> Iterator[str]:
    """The bullets of a module's docstring, each up to its colon: what stands before it is listed as being here."""
    for bullet in re.split(r"^\* ", header, flags=re.M)[1:]:
        for part in bullet.split("\n\n")[0].split(";"):
            yield re.split(r":\s", part, maxsplit=1)[0]


def parameters(tree: ast.Module) -> dict[str, set[str]]:
    """Every function, method and class that a module defines: the names of what it takes; {"*"}: any."""
    found: dict[str, set[str]] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = _names(node)
            case ast.ClassDef():
                found[node.name] = {
                    item.target.id
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                }
                for item in node.body:
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                        found[f"{node.name}.{item.name}"] = _names(item)
                        if item.name == "__init__":
                            found[node.name] |= _names(item)
                if node.bases and f"{node.name}.__init__" not in found:
                    found[node.name].add("*")  # its parent takes them
    return found


def _names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    given = node.args
    names = {argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    names |= {argument.arg for argument in (given.vararg, given.kwarg) if argument}
    return names | ({"*"} if given.kwarg else set())


def stale(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known, complaints = parameters(tree), []
    for headline in headlines(ast.get_docstring(tree) or ""):
        for name, arguments in _NAMED.findall(headline):
            if name not in known:
                continue  # what it imports, or a method of one of its objects, by the object's name
            taken = [word.split("=")[0].strip("* ") for word in arguments.replace("...", "").split(",")]
            words = [word for word in taken if re.fullmatch(r"[A-Za-z_]\w*", word)]
            if "*" not in known[name]:
                complaints += [f"{name}: {word}" for word in words if word not in known[name]]
    return complaints


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_header_names_arguments_that_there_are(path: Path) -> None:
    assert stale(path) == []


def test_a_stale_header_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""What.\n\n* `f(old, new)`: it.\n"""\n\n\ndef f(new): ...\n', encoding="utf-8")
    assert stale(module) == ["f: old"]
