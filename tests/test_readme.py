"""What README shows, runs."""

import re
import shlex
from pathlib import Path

import pytest
from tasks.readers import backbone, preprocessor

import bert_keras
from bert_keras.cli import _parser
from bert_keras.text.options import TokenizerOptions

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_keras_example_runs(capsys):
    example, *_ = EXAMPLES
    assert len([line for line in example.splitlines() if line]) <= 15
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert names["vectors"].shape == (100, 32, 128)
    assert int(names["model"].optimizer.iterations) == 20


def test_the_tokenizer_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tokens = [*bert_keras.SpecialTokens(), "[unused1]", "welcome", "to", "!"]
    bert_keras.Vocabulary(tokens).write("vocab.txt")
    _, example, *_ = EXAMPLES
    assert "never_split" in example
    exec(compile(example, "README.md", "exec"), {"bk": bert_keras})


def test_the_pretraining_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [f"The fox number {n} sleeps.\nIt is {n}." for n in range(60)]
    Path("corpus.txt").write_text("\n\n".join(texts))
    words = bert_keras.count_words(texts)
    bert_keras.learn_vocabulary(words, 60).write("vocab.txt")
    _, _, example, _ = EXAMPLES
    names: dict = {"bk": bert_keras}
    exec(compile(example, "README.md", "exec"), names)
    assert int(names["model"].optimizer.iterations) == 10
    assert names["evaluation"].metrics["masked_lm_perplexity"] > 1


def test_the_checkpoint_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = bert_keras.BertEmbedder(backbone(), preprocessor())
    bert_keras.save_checkpoint(model, "folder", to="huggingface")
    *_, example = EXAMPLES
    names: dict = {"bk": bert_keras}
    exec(compile(example, "README.md", "exec"), names)
    assert type(names["model"]) is bert_keras.BertEmbedder
    assert Path("other", "model.safetensors").exists()


def test_every_option_of_the_tokenizer_is_named():
    for name in TokenizerOptions._fields:
        assert f"`{name}" in README, name


def test_every_command_is_parsed_and_listed():
    rows = re.findall(r"^\| `bert-keras (.*?)`", README, re.MULTILINE)
    parser = _parser()
    for row in rows:
        row = row.replace("CORPUS...", "CORPUS").replace("N ", "5 ")
        parser.parse_args(shlex.split(row))
    (commands,) = (a.choices for a in parser._actions if hasattr(a.choices, "keys"))
    assert {row.split()[0] for row in rows} == set(commands)


def test_the_layout_names_what_is_there():
    layout = README.split("```\nbert_keras/\n")[1].split("```")[0]
    named = set(re.findall(r"([a-z_]+)(?:\.py|/)", layout))
    there = {
        path.stem
        for path in (ROOT / "bert_keras").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert named == there - {"__init__", "quiet"}


def test_make_has_the_two_commands():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert command in targets


def test_every_public_name_is_documented_and_there():
    for name in bert_keras.__all__:
        value = getattr(bert_keras, name)
        if callable(value):
            assert value.__doc__ and len(value.__doc__) > 20, name


@pytest.mark.skipif(not (ROOT / ".ci" / "run").exists(), reason="not a checkout")
def test_ci_runs_make_test():
    assert "make test" in (ROOT / ".ci" / "run").read_text()
