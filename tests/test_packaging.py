"""The wheel: pure, and with everything the code reads."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_s10_the_wheel_is_pure_and_complete(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    subprocess.run([*command, "--wheel-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        str(path.relative_to(ROOT)).replace("\\", "/")
        for path in (ROOT / "bert_keras").rglob("*")
        if path.suffix in (".py", ".npz")
    }
    assert sources <= names
    assert not any(name.startswith(("tests", "tools")) for name in names)
