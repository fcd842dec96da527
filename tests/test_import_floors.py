"""A file imports from its own room and from the floors below: nothing else."""

import ast
from pathlib import Path

import bert_keras

PACKAGE = Path(bert_keras.__file__).parent
FLOORS = {
    "features": 0,
    "files": 0,
    "quiet": 0,
    "config": 0,
    "one_pass": 0,
    "text": 1,
    "tokens": 2,
    "dropout": 2,
    "embeddings": 3,
    "encoder": 4,
    "training": 5,
    "pretraining": 6,
    "tasks": 6,
    "checkpoints": 7,
    "export": 7,
    "inspect": 7,
    "demo": 8,
    "commands": 9,
    "cli": 10,
    "__init__": 11,
}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(source: str) -> set[str]:
    """Returns the rooms that a source imports from."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [node.module]
            if node.module == "bert_keras":
                names = [f"bert_keras.{alias.name}" for alias in node.names]
        rooms |= {n.split(".")[1] for n in names if n.startswith("bert_keras.")}
    return rooms


def too_high(name: str, rooms: set[str]) -> set[str]:
    return {other for other in rooms - {name} if FLOORS[other] >= FLOORS[name]}


def test_imports_go_down():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 20
    wrong = {
        str(path.relative_to(PACKAGE)): bad
        for path in files
        if (bad := too_high(room(path), imported(path.read_text("utf-8"))))
    }
    assert not wrong


def test_the_check_itself_sees_an_import_that_goes_up():
    source = "from bert_keras.export.parity import compare\nimport bert_keras.cli\n"
    assert too_high("text", imported(source)) == {"export", "cli"}


def test_no_foreign_engine_is_imported():
    for path in PACKAGE.rglob("*.py"):
        forbidden = {"torch", "tf_keras", "transformers"}
        if path.name != "fast_lane.py":
            forbidden |= {"tensorflow_text"}
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module]
            assert not forbidden & {name.split(".")[0] for name in names}, path
