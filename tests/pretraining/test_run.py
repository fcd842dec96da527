"""A run folder: made, interrupted, taken up again."""

import json

import keras
import numpy as np
import pytest
from oracles import SMALL

from bert_keras import WordPieceTokenizer
from bert_keras.pretraining.run import (
    MODEL_FILE,
    PretrainingOptions,
    pretrain,
    split_documents,
)

SENTENCES = ["the quick fox.", "brown the fox", "fox fox.", "the quick brown fox."]
DOCUMENTS = [SENTENCES[n % 4 :] + SENTENCES[: n % 3] for n in range(45)]
OPTIONS = PretrainingOptions(
    steps=6, sequence_length=12, batch_size=4, predictions=2, seed=3
)


class Stopped(Exception):
    """Stands for whatever ends a run early."""


def weights(model):
    return [weight.numpy() for weight in model.weights]


@pytest.fixture
def tokenizer(small_vocabulary):
    return WordPieceTokenizer(small_vocabulary)


def test_each_twentieth_document_is_held_out():
    training, held_out = split_documents([[str(n)] for n in range(45)])
    assert held_out == [["19"], ["39"]]
    assert len(training) == 43
    assert split_documents([["a"]] * 39) == ([["a"]] * 39, [])


def test_a_run_leaves_a_complete_folder(tmp_path, tokenizer):
    model, evaluation = pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path)
    assert int(model.optimizer.iterations) == 6
    assert 0 < evaluation.unigram_accuracy <= 1
    stored = json.loads((tmp_path / "metrics.json").read_text())
    assert stored["metrics"] == evaluation.metrics
    loaded = keras.saving.load_model(tmp_path / MODEL_FILE)
    for mine, theirs in zip(weights(model), weights(loaded), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["metrics.json", "model.keras", "options.json"]
    # The model reads [MASK]; the corpus does not.
    ids = loaded.preprocessor("[MASK]")["token_ids"].numpy().tolist()
    assert ids == [2, 4, 3]
    assert not tokenizer.options.special_tokens_in_text


def test_interrupted_and_taken_up_again_it_ends_with_the_same_weights(
    tmp_path, tokenizer, monkeypatch
):
    whole, _ = pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path / "whole")

    class Interrupts(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                raise Stopped

    from bert_keras.pretraining import run

    monkeypatch.setattr(run, "_SAVE_STEPS", 2)
    monkeypatch.setattr(run, "ProgressLine", lambda *_: Interrupts())
    with pytest.raises(Stopped):
        pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path / "cut")
    monkeypatch.undo()
    saved = keras.saving.load_model(tmp_path / "cut" / MODEL_FILE)
    assert int(saved.optimizer.iterations) == 4
    resumed, _ = pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path / "cut")
    assert int(resumed.optimizer.iterations) == 6
    for mine, theirs in zip(weights(whole), weights(resumed), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_another_run_s_folder_is_refused(tmp_path, tokenizer):
    pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path)
    before = (tmp_path / MODEL_FILE).read_bytes()
    other = PretrainingOptions(**{**OPTIONS.__dict__, "learning_rate": 5e-4})
    with pytest.raises(ValueError, match=r"learning_rate=0.0005.*learning_rate=0.001"):
        pretrain(DOCUMENTS, tokenizer, other, tmp_path)
    larger = WordPieceTokenizer([*SMALL, "more"])
    with pytest.raises(ValueError, match="vocabulary="):
        pretrain(DOCUMENTS, larger, OPTIONS, tmp_path)
    accented = tokenizer.copy(strip_accents=False)
    with pytest.raises(ValueError, match="strip_accents=False"):
        pretrain(DOCUMENTS, accented, OPTIONS, tmp_path)
    assert (tmp_path / MODEL_FILE).read_bytes() == before
    # The engine gives the same ids, and so it is the same run.
    pretrain(DOCUMENTS, tokenizer.copy(engine="stock"), OPTIONS, tmp_path)


def test_another_corpus_is_another_run(tmp_path, tokenizer):
    pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path)
    with pytest.raises(ValueError, match="corpus="):
        pretrain(DOCUMENTS[1:], tokenizer, OPTIONS, tmp_path)


def test_a_run_that_never_began_may_be_corrected(tmp_path, tokenizer):
    with (
        pytest.warns(UserWarning, match="one document"),
        pytest.raises(ValueError, match="no sentence pair"),
    ):
        pretrain([["fox"]], tokenizer, OPTIONS, tmp_path)
    assert list(tmp_path.iterdir()) == []
    pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "huge"),
        ("steps", 0),
        ("sequence_length", 4),
        ("batch_size", 0),
        ("predictions", 0),
        ("learning_rate", 0.0),
        ("dropout", 1.0),
        ("seed", -1),
    ],
)
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{value}.*allowed"):
        PretrainingOptions(**{name: value})


def test_a_finished_run_is_not_trained_further(tmp_path, tokenizer):
    first, _ = pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path)
    again, _ = pretrain(DOCUMENTS, tokenizer, OPTIONS, tmp_path)
    for mine, theirs in zip(weights(first), weights(again), strict=True):
        np.testing.assert_array_equal(mine, theirs)
