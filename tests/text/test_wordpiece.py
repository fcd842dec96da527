"""Ids equal to the references', for every text, vocabulary, rule set and target.

The whole sweep is slow; a sample of it is not.
"""

import itertools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from fuzz import broken, fuzzed
from google_rule import google_ids, needs_its_unicode
from oracles import (
    CODEPOINTS,
    SMALL,
    needs_data,
    reference_tokenizer,
    shared_lines,
    vocabulary_path,
)

from bert_keras import Vocabulary, WordPieceTokenizer
from bert_keras.export.artefacts import codepoints_of
from bert_keras.export.onnx import session, to_onnx
from bert_keras.text.options import WORD_LIMITS

# name of the vocabulary -> is it lower-cased?
PUBLISHED = {
    "uncased": True,
    "cased": False,
    "chinese": True,
    "multilingual-cased": False,
}
each_vocabulary = pytest.mark.parametrize("name", PUBLISHED)
BATCH = 1000


def read(name):
    return Vocabulary.read(vocabulary_path(name))


def batches(texts):
    return (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))


def characters_of(text):
    """Bytes that are no UTF-8 are left out, as the script of 2018 did."""
    return text.decode("utf-8", "ignore") if isinstance(text, bytes) else text


def huggingface(vocabulary, **options):
    reference = reference_tokenizer(vocabulary, **options)

    def ids(texts):
        for batch in batches(texts):
            batch = list(map(characters_of, batch))
            encoded = reference.encode_batch(batch, add_special_tokens=False)
            yield from (encoding.ids for encoding in encoded)

    return ids


def google(vocabulary, **options):
    ids = {token: number for number, token in enumerate(vocabulary) if token}
    return lambda texts: (google_ids(text, ids, **options) for text in texts)


def eager(tokenizer):
    ragged = tokenizer.copy(ragged=True)

    def ids(texts):
        for batch in batches(texts):
            yield from ragged(tf.constant(batch, tf.string))["token_ids"].to_list()

    return ids


def in_graph(tokenizer):
    ragged = tokenizer.copy(ragged=True)
    graph = tf.function(lambda texts: ragged(texts)["token_ids"])

    def ids(texts):
        for batch in batches(texts):
            yield from graph(tf.constant(batch, tf.string)).to_list()

    return ids


def in_tf_data(tokenizer):
    ragged = tokenizer.copy(ragged=True)

    def ids(texts):
        dataset = tf.data.Dataset.from_tensor_slices(texts).batch(BATCH).map(ragged)
        for batch in dataset:
            yield from batch["token_ids"].to_list()

    return ids


def unbatched(tokenizer):
    def ids(texts):
        dataset = tf.data.Dataset.from_tensor_slices(list(texts))
        for row in dataset.map(tokenizer, num_parallel_calls=2):
            yield row["token_ids"].numpy().tolist()

    return ids


def in_saved_model(tokenizer, folder):
    text = keras.Input((), dtype="string")
    keras.Model(text, tokenizer(text)).export(folder, verbose=False)
    served = tf.saved_model.load(folder).serve

    def ids(texts):
        for batch in batches(texts):
            yield from _rows(served(tf.constant(batch, tf.string)))

    return ids


def in_onnx(tokenizer):
    signature = [tf.TensorSpec([None, None], tf.int32, name="codepoints")]
    made = session(to_onnx(lambda x: tokenizer(x), signature).SerializeToString())

    def ids(texts):
        names = ["token_ids", "counts"]
        for batch in batches(texts):
            codepoints = codepoints_of(list(map(characters_of, batch)))
            answered = made.run(names, {"codepoints": codepoints})
            yield from _rows(dict(zip(names, answered, strict=True)))

    return ids


def _rows(answer):
    ids, counts = np.asarray(answer["token_ids"]), np.asarray(answer["counts"])
    return (row[:count].tolist() for row, count in zip(ids, counts, strict=True))


def assert_equal(texts, expected_of, *engines):
    """Compares row by row; rows are sorted by length, so that padding stays small."""
    texts = sorted(texts, key=len)
    answers = (expected_of(texts), *(engine(texts) for engine in engines))
    wrong = []
    for text, expected, *answered in zip(texts, *answers, strict=True):
        wrong += [(text, ids, expected) for ids in answered if ids != expected]
    assert not wrong, f"{len(wrong)} texts differ, such as {wrong[0]}"


def every_codepoint(step=1, start=0):
    for codepoint in CODEPOINTS[start::step]:
        character = chr(codepoint)
        yield from (character, f"x{character}y", f"a {character} b")


def targets(tokenizer, folder):
    return (
        eager(tokenizer),
        in_graph(tokenizer),
        in_tf_data(tokenizer),
        in_saved_model(tokenizer, folder),
        in_onnx(tokenizer),
    )


@needs_data
def test_a_sample_in_every_target(uncased, tmp_path):
    tokenizer = WordPieceTokenizer(uncased)
    texts = [
        *itertools.islice(shared_lines(), 0, None, 100),
        *every_codepoint(1999),
        *fuzzed(2000, seed=1, limit=100),
    ]
    expected = huggingface(uncased)
    assert_equal(texts, expected, *targets(tokenizer, tmp_path / "saved"))
    assert_equal(texts[::20], expected, unbatched(tokenizer))


@needs_data
@each_vocabulary
def test_a_sample(name):
    vocabulary, lowercase = read(name), PUBLISHED[name]
    tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
    texts = [
        *itertools.islice(shared_lines(), 50, None, 50),
        *every_codepoint(97),
        *fuzzed(5000, seed=2, limit=100),
    ]
    expected = huggingface(vocabulary, lowercase=lowercase)
    assert_equal(texts, expected, eager(tokenizer), in_tf_data(tokenizer))


@needs_data
@needs_its_unicode
@each_vocabulary
def test_a_sample_under_the_rule_of_2018(name):
    vocabulary, lowercase = read(name), PUBLISHED[name]
    tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase, rules="google")
    texts = [
        *itertools.islice(shared_lines(), 30, None, 200),
        *every_codepoint(499),
        *fuzzed(3000, seed=3, limit=200),
    ]
    expected = google(vocabulary, lowercase=lowercase)
    assert_equal(texts, expected, eager(tokenizer), in_tf_data(tokenizer))


@needs_data
@needs_its_unicode
def test_broken_utf8(uncased):
    texts = list(broken(3000, seed=3))
    tokenizer = WordPieceTokenizer(uncased, rules="google")
    engines = eager(tokenizer), in_tf_data(tokenizer)
    assert_equal(texts, google(uncased), *engines)


OPTIONS = [
    {"lowercase": True, "strip_accents": False},
    {"lowercase": False, "strip_accents": True},
    {"lowercase": True, "split_on_cjk": False},
    {"normalization": "NFC", "lowercase": False},
    {"normalization": "NFC", "lowercase": True},
    {"max_characters_per_word": 7},
    {"never_split": ("the", "İstanbul", "ไทย", "[SEP]")},
]
ALL_AT_ONCE = {
    "lowercase": False,
    "strip_accents": True,
    "split_on_cjk": False,
    "max_characters_per_word": 7,
    "never_split": ("the", "İstanbul", "ไทย", "[SEP]"),
}


def vocabulary_for(options):
    """A vocabulary of single characters in which each option makes a difference."""
    characters = sorted({c for text in fuzzed(3000, seed=4, limit=9) for c in text})
    characters = [c for c in characters if c not in "\n\r" and c.isprintable()]
    words = [*options.get("never_split", ()), "è", "##é", "Ａ", "한국", "##국"]
    tokens = [*SMALL, *words, *characters, *("##" + c for c in characters)]
    return Vocabulary(dict.fromkeys(tokens))


def with_options(options):
    """Returns a tokenizer and the reference with the same options."""
    vocabulary = vocabulary_for(options)
    theirs = dict(options)
    if "max_characters_per_word" in theirs:
        theirs["limit"] = theirs.pop("max_characters_per_word")
    return WordPieceTokenizer(vocabulary, **options), huggingface(vocabulary, **theirs)


# The library takes "_" and ideographs for letters of the word beside them; to us they
# are words of their own, as they are to BERT.
NAME = "|".join(ALL_AT_ONCE["never_split"])
OWN = (
    "[_\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
BESIDE = re.compile(f"({NAME}){OWN}|{OWN}({NAME})")


def comparable(texts):
    return [text for text in texts if not BESIDE.search(text)]


@pytest.mark.filterwarnings("ignore:The vocabulary looks cased")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option(options):
    tokenizer, expected = with_options(options)
    texts = [*comparable(fuzzed(3000, seed=5, limit=9)), *every_codepoint(997)]
    assert_equal(texts, expected, eager(tokenizer), in_tf_data(tokenizer))


@pytest.mark.parametrize(
    "options",
    [ALL_AT_ONCE, *(pytest.param(o, marks=pytest.mark.slow) for o in OPTIONS)],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The vocabulary looks cased")
def test_options_in_every_target(options, tmp_path):
    tokenizer, expected = with_options(options)
    texts = comparable(fuzzed(2000, seed=6, limit=9))
    assert_equal(texts, expected, *targets(tokenizer, tmp_path / "saved"))


def test_marks_that_nfd_puts_in_order(random):
    """Of category Mc, and so not stripped: classes 9, 216, 224, 226; and some Mn."""
    marks = [*"\u1b44\U0001d165\u302e\U0001d16d", "\U0001d15e", "é", "\u0301", "\u0900"]
    parts = [*marks, "a", " ", "\u200b", "."]
    tokens = [*SMALL, *"ae", *marks[:4], "\U0001d157"]
    vocabulary = Vocabulary([*tokens, *("##" + c for c in tokens[len(SMALL) :])])
    texts = ["".join(random.choice(parts, 6)) for _ in range(3000)]
    for rules, expected in (("huggingface", huggingface), ("google", google)):
        tokenizer = WordPieceTokenizer(vocabulary, rules=rules)
        assert_equal(texts, expected(vocabulary), eager(tokenizer))
    tokenizer = WordPieceTokenizer(vocabulary, normalization="NFC")
    assert_equal(texts, huggingface(vocabulary, normalization="NFC"), eager(tokenizer))


def test_random_words_of_a_small_vocabulary(random):
    """Backtracking, words without pieces, and words at the limit of 100 characters."""
    pieces = ["a", "b", "ab", "##a", "##b", "##ab", "##bab", "abba", "##aaaaaaaa"]
    vocabulary = Vocabulary([*SMALL, *pieces])
    texts = []
    for _ in range(3000):
        lengths = random.choice([1, 2, 3, 5, 8, 13, 99, 100, 101], 4)
        words = ("".join(random.choice(list("aaabbbc"), n)) for n in lengths)
        texts.append(random.choice([" ", "-", "\t", ""]).join(words))
    texts += ["a" * n for n in range(95, 105)]
    tokenizer = WordPieceTokenizer(vocabulary)
    engines = eager(tokenizer), in_tf_data(tokenizer)
    assert_equal(texts, huggingface(vocabulary), *engines)


@pytest.mark.slow
@needs_data
@each_vocabulary
@pytest.mark.parametrize(
    "rules", ["huggingface", pytest.param("google", marks=needs_its_unicode)]
)
class TestTheWholeSweep:
    """All texts, vocabularies, rule sets and targets."""

    @pytest.fixture
    def assert_same(self, name, rules, tmp_path):
        vocabulary, lowercase = read(name), PUBLISHED[name]
        tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase, rules=rules)
        reference = {"huggingface": huggingface, "google": google}[rules]
        expected = reference(vocabulary, lowercase=lowercase)
        engines = targets(tokenizer, tmp_path / "saved")

        def check(texts, one_by_one):
            assert_equal(texts, expected, *engines)
            assert_equal(one_by_one, expected, unbatched(tokenizer))

        return check

    def test_every_line_of_the_shared_data(self, assert_same):
        texts = list(shared_lines())
        assert len(texts) > 100_000
        assert_same(texts, one_by_one=texts)

    def test_every_codepoint(self, assert_same):
        texts = list(every_codepoint())
        # One by one takes long: a hundred texts are one.
        joined = (" ".join(texts[i : i + 100]) for i in range(0, len(texts), 100))
        assert_same(texts, one_by_one=joined)

    def test_fuzz(self, assert_same, rules):
        texts = list(fuzzed(200_000, seed=6, limit=WORD_LIMITS[rules]))
        assert_same(texts, one_by_one=texts)

    def test_broken_utf8(self, assert_same):
        texts = list(broken(50_000, seed=8))
        assert_same(texts, one_by_one=texts)
