"""The demo reaches what it promises. It takes minutes, and so it is slow."""

import io
import json

import pytest

from bert_keras import demo
from bert_keras.export.artefacts import open_artefact


@pytest.mark.slow
def test_the_demo_reaches_its_aims(tmp_path):
    results = io.StringIO()
    demo.run(tmp_path, results)
    reached = json.loads((tmp_path / "metrics.json").read_text())
    accuracy = reached["metrics"]["masked_lm_accuracy"]
    assert accuracy >= 0.25
    assert accuracy >= 5 * reached["unigram_accuracy"]
    table = results.getvalue()
    for name in ("vocab.txt", "model.keras", "saved_model", "text_model.onnx"):
        assert (tmp_path / name).exists()
        assert name in table
    assert open_artefact(tmp_path / "text_model.onnx").kind == "ONNX from text"


def test_a_small_demo_prints_its_table(tmp_path, monkeypatch):
    """The whole path in seconds: little text, few pieces, few steps."""
    monkeypatch.setattr(demo, "CHARACTERS", 400_000)
    monkeypatch.setattr(demo, "VOCABULARY_SIZE", 300)
    options = demo.PretrainingOptions(
        steps=4, sequence_length=16, batch_size=8, predictions=2
    )
    monkeypatch.setattr(demo, "OPTIONS", options)
    results = io.StringIO()
    demo.run(tmp_path, results)
    table = results.getvalue()
    for expected in (
        "vocab.txt",
        "model.keras",
        "masked-LM accuracy on held-out documents",
        "always the most frequent piece",
        "same answers as Keras?",
        "bert-keras check",
    ):
        assert expected in table
    for text in demo.MASKED:
        assert text in table
    # Another corpus, as after an upgrade of the installed packages: it starts afresh.
    monkeypatch.setattr(demo, "VOCABULARY_SIZE", 290)
    monkeypatch.setattr(demo, "export_model", lambda *_, **__: {})  # was seen above
    demo.run(tmp_path, results)
    assert len((tmp_path / "vocab.txt").read_bytes().splitlines()) == 290
