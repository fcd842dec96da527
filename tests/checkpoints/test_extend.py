"""More tokens and longer texts: what was known stays, bit for bit."""

import keras
import numpy as np
import pytest
from checkpoints.models import MAKERS, TOKENS, model_of

from bert_keras.checkpoints.extend import extend_model

TABLE = "embeddings/token_embedding/embeddings"
OUTPUT_TABLE = "masked_lm/output_table/embeddings"
POSITIONS = "embeddings/position_embeddings"
NEW = ["covid", "##19", "mrna"]
OLD_ROWS = len(TOKENS)


def arrays(model) -> dict[str, np.ndarray]:
    return {variable.path: variable.numpy() for variable in model.weights}


def ids(model, text: str) -> list[int]:
    return model.preprocessor(text)["token_ids"].numpy().tolist()


@pytest.mark.parametrize("kind", MAKERS)
def test_e09_what_was_known_stays(kind):
    model = model_of(kind)
    extended = extend_model(model, NEW)
    assert type(extended) is type(model)
    before, after = arrays(model), arrays(extended)
    assert before.keys() == after.keys()
    grown = {TABLE, OUTPUT_TABLE, "masked_lm/bias"} & before.keys()
    for path in before:
        rows = OLD_ROWS if path in grown else None
        np.testing.assert_array_equal(after[path][:rows], before[path], err_msg=path)
    for path in grown:
        assert after[path].shape == (OLD_ROWS + 3, *before[path].shape[1:])
        assert np.isfinite(after[path]).all()
    old, new = model.get_config(), extended.get_config()
    for name in old.keys() - {"backbone", "preprocessor"}:
        assert old[name] == new[name], name
    names = {**model.backbone.get_config(), "vocabulary_size": OLD_ROWS + 3}
    assert extended.backbone.get_config() == names


def test_the_preprocessor_knows_the_tokens():
    model = model_of("pretrainer", text={"lowercase": False, "strip_accents": True})
    extended = extend_model(model, NEW)
    tokenizer, old = extended.preprocessor.tokenizer, model.preprocessor.tokenizer
    assert tokenizer.vocabulary.tokens == (*TOKENS, *NEW)
    assert tokenizer.options == old.options
    assert ids(extended, "the covid19 fox") == [2, 5, OLD_ROWS, OLD_ROWS + 1, 10, 3]
    assert 1 in ids(model, "the covid19 fox")
    assert extended.preprocessor.sequence_length == 12
    assert extended.preprocessor.pad_to_longest


def test_tokens_that_the_rules_cut_up_are_recognised_as_written():
    extended = extend_model(model_of("tagger"), ["[E1]", "covid", "RNA", "##X"])
    assert extended.preprocessor.tokenizer.options.never_split == ("[E1]", "RNA")
    found = ids(extended, "[E1] RNA rna covid")
    assert found == [2, OLD_ROWS, OLD_ROWS + 2, 1, OLD_ROWS + 1, 3]


def test_e09_tied_stays_tied():
    extended = extend_model(model_of("pretrainer"), NEW)
    assert extended.masked_lm_head.token_embedding is extended.backbone.token_embedding
    assert extended.masked_lm_head.bias.shape == (OLD_ROWS + 3,)
    logits = extended.encode(extended.preprocessor(["the covid fox"]))
    assert logits["masked_lm_logits"].shape == (1, 5, OLD_ROWS + 3)


def test_new_rows_are_drawn_as_in_a_new_model():
    model = model_of("untied", hidden_dim=512, initializer_range=0.02)
    made = [f"new{number}" for number in range(40)]
    rows = {
        path: array[OLD_ROWS:]
        for path, array in arrays(extend_model(model, made)).items()
        if path in (TABLE, OUTPUT_TABLE, "masked_lm/bias")
    }
    assert 0.01 < rows[TABLE].std() < 0.03
    assert np.abs(rows[TABLE].mean()) < 1e-3
    assert len(np.unique(rows[TABLE])) > 0.99 * rows[TABLE].size
    assert (rows[TABLE] != rows[OUTPUT_TABLE]).mean() > 0.99
    assert not rows["masked_lm/bias"].any()


def test_the_seed():
    model = model_of("tagger")
    tables = [arrays(extend_model(model, NEW, seed=n))[TABLE] for n in (1, 1, 2)]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert (tables[0][OLD_ROWS:] != tables[2][OLD_ROWS:]).all()


@pytest.mark.parametrize("kind", ["pretrainer", "untied"])
def test_new_rows_that_are_the_mean(kind):
    model = model_of(kind)
    before, after = arrays(model), arrays(extend_model(model, NEW, new_rows="mean"))
    for path in {TABLE, OUTPUT_TABLE, "masked_lm/bias"} & before.keys():
        for row in after[path][OLD_ROWS:]:
            np.testing.assert_allclose(row, before[path].mean(axis=0), atol=1e-7)


def test_rows_that_no_token_has_are_used_first():
    model = model_of("pretrainer", vocabulary_size=OLD_ROWS + 2)
    extended = extend_model(model, ["covid"])
    before, after = arrays(model)[TABLE], arrays(extended)[TABLE]
    assert after.shape == before.shape
    same = (before == after).all(axis=1)
    assert same.tolist() == [True] * OLD_ROWS + [False, True]


def test_positions_once_more():
    model = model_of("tagger")
    extended = extend_model(model, max_sequence_length=40)
    before, after = arrays(model)[POSITIONS], arrays(extended)[POSITIONS]
    np.testing.assert_array_equal(after, np.concatenate([before, before, before[:8]]))
    assert extended.backbone.max_sequence_length == 40
    assert extended.preprocessor.sequence_length == 12  # it cut there on purpose
    text = "the " * 5
    one, other = (m.encode(m.preprocessor([text])) for m in (model, extended))
    np.testing.assert_array_equal(one["tag_logits"], other["tag_logits"])


def test_positions_stretched():
    model = model_of("tagger", text={"sequence_length": 16})
    extended = extend_model(model, max_sequence_length=31, positions="interpolate")
    before, after = arrays(model)[POSITIONS], arrays(extended)[POSITIONS]
    np.testing.assert_array_equal(after[::2], before)
    middle = (before[:-1] + before[1:]) / 2
    np.testing.assert_allclose(after[1::2], middle, atol=1e-6)
    assert extended.preprocessor.sequence_length == 31
    assert len(ids(extended, "the " * 40)) == 31


def test_both_at_once_and_saved(tmp_path):
    extended = extend_model(model_of("masked_lm"), ["[E1]"], max_sequence_length=20)
    extended.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    features = extended.preprocessor(["the [E1] fox"])
    one, other = (m.encode(features)["masked_lm_logits"] for m in (extended, again))
    np.testing.assert_array_equal(one, other)
    assert ids(again, "the [E1] fox") == ids(extended, "the [E1] fox")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": ["the"]}, "A new token must be new. Received: 'the'"),
        ({"tokens": ["new", "new"]}, "A new token must be new. Received: 'new'"),
        ({"tokens": ["two words"]}, "Received: 'two words'; allowed: words without"),
        ({"new_rows": "zeros"}, "new_rows='zeros'; allowed: 'initializer', 'mean'"),
        ({"positions": "copy"}, "positions='copy'; allowed: 'repeat', 'interpolate'"),
        (
            {"max_sequence_length": 15},
            "max_sequence_length=15; allowed: .* at least 16",
        ),
        (
            {"max_sequence_length": 20.5},
            "max_sequence_length=20.5; allowed: an integer",
        ),
    ],
)
def test_what_is_not_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        extend_model(model_of("tagger"), **arguments)


def test_tokens_need_a_vocabulary():
    model = model_of("tagger")
    model.preprocessor = None
    with pytest.raises(
        ValueError, match="Received: a model with preprocessor=None; al"
    ):
        extend_model(model, ["new"])
    assert extend_model(model, max_sequence_length=20).preprocessor is None
