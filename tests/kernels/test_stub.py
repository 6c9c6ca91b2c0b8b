"""The stub names what the native module has, no more and no less."""

import ast
from pathlib import Path

import treefill
from treefill import _kernels

STUB = next(path for folder in treefill.__path__ if (path := Path(folder) / "_kernels.pyi").exists())


def test_the_stub_and_the_module_agree() -> None:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    members = {
        node.name: {name for member in node.body if (name := name_of(member))}
        for node in definitions
        if isinstance(node, ast.ClassDef)
    }

    assert {node.name for node in definitions} == {
        name for name in vars(_kernels) if not name.startswith("_")
    }
    for name, stubbed in members.items():
        real = {member for member in vars(getattr(_kernels, name)) if not member.startswith("_")}
        assert stubbed - {"__init__"} == real


def name_of(member: ast.stmt) -> str:
    """Of a method, of a field with its type or of a member of an enumeration; empty for what is none of them."""
    targets = member.targets if isinstance(member, ast.Assign) else [getattr(member, "target", None)]
    if isinstance(targets[0], ast.Name):
        return targets[0].id
    return member.name if isinstance(member, ast.FunctionDef) else ""
