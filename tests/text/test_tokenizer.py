"""The tokenizer layer: ids, options, and every way to call it."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import SMALL, needs_data, reference_tokenizer

from bert_keras import SpecialTokens, Vocabulary, WordPieceTokenizer

TEXTS = ["The quick fox.", "", "brown quickz", "  \u200b", "the\x00 fox\tthe"]
IDS = [[5, 6, 7, 10, 11], [], [8, 9, 1], [], [5, 10, 5]]  # by hand, in SMALL


def rows(answer):
    pairs = zip(answer["token_ids"].numpy(), answer["counts"].numpy(), strict=True)
    return [ids[:count].tolist() for ids, count in pairs]


def ids(tokenizer, text):
    return tokenizer(text)["token_ids"].numpy().tolist()


@needs_data
def test_the_example_of_the_question(uncased):
    text = "Welcome to HuggingFace Forums!"
    expected = [6160, 2000, 17662, 12172, 21415, 999]
    assert ids(WordPieceTokenizer(uncased), text) == expected


# Ids under bert-base-uncased, from the public reports: the rule of 2018.
REPORTED = {
    "N01": ("café naïve", [7668, 15743]),
    "N03": ("안", [1463, 30006, 30021]),
    "N03b": ("한국", [1469, 30006, 30021, 29991, 30014, 30020]),
    "N04": ("パンダ", [1718, 30263, 30235]),
    "N04b": ("कु अपने", [1315, 1311, 29864, 29863]),
    "N07": ("Straße", [2358, 27807]),
    "N07b": ("ＡＢ，", [100, 1989]),
    "N07c": ("ﬁsh", [1984, 4095]),
    "N07d": ("Ⅷ", [100]),
    "N07e": ("ΣΣ ΟΣ", [1173, 19579, 1169, 19579]),
    "N09": ("ice\ncream", [3256, 6949]),
    "N09b": ("red\twine", [2417, 4511]),
    "N09c": ("one\r\ntwo", [2028, 2048]),
    "N11": ("abc \U000fe4fa def", [5925, 100, 13366]),
    "N11b": ("a\ue000b", [100]),
    "N13": ("Tōkyō nǚ", [5522, 16371]),
    "N13b": ("Việt Sử", [19710, 10514]),
    "N14": ("nice🚀", [100]),
    "N14b": ("big 🚀 day", [2502, 100, 2154]),
    "N16": ("[mask]", [1031, 7308, 1033]),
    "N20": ("", []),
    "N20b": ("   ", []),
    "N20c": ("\u200b\x01", []),
    "O06": ("\ufeffhello", [7592]),
}
# What the `tokenizers` library makes of some of them: see the table in rules.py.
OTHERS = {
    "N07e": [1173, 29733, 1169, 29733],
    "N11": [5925, 13366],
    "N11b": [11113],
}


@needs_data
@pytest.mark.parametrize("report", REPORTED)
def test_reported(report, uncased):
    text, expected = REPORTED[report]
    assert ids(WordPieceTokenizer(uncased, rules="google"), text) == expected
    library = OTHERS.get(report, expected)
    assert ids(WordPieceTokenizer(uncased), text) == library
    reference = reference_tokenizer(uncased)
    assert reference.encode(text, add_special_tokens=False).ids == library


def test_padding_counts_and_unknown_words(small_vocabulary):
    answer = WordPieceTokenizer(small_vocabulary)(TEXTS)
    assert rows(answer) == IDS
    assert answer["token_ids"].shape == (5, 5)
    assert answer["token_ids"].dtype == answer["counts"].dtype == tf.int32


def test_n22_a_single_text_has_no_batch_axis(small_vocabulary):
    answer = WordPieceTokenizer(small_vocabulary)("the quick")
    assert answer["token_ids"].numpy().tolist() == [5, 6, 7]
    assert answer["counts"].numpy() == 3


@pytest.mark.parametrize("length", [1, 3, 9])
def test_sequence_length_cuts_and_pads(small_vocabulary, length):
    answer = WordPieceTokenizer(small_vocabulary, sequence_length=length)(TEXTS)
    assert answer["token_ids"].shape == (5, length)
    assert rows(answer) == [row[:length] for row in IDS]


def test_n20_batches_of_nothing(small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary)
    assert tokenizer(["", "  "])["token_ids"].shape == (2, 0)
    assert tokenizer(tf.constant([], tf.string))["token_ids"].shape == (0, 0)


def test_l04_every_way_to_call_gives_the_same(small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary)
    ragged = WordPieceTokenizer(small_vocabulary, ragged=True)
    graph = tf.function(lambda texts: tokenizer(texts))
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    codepoints = np.zeros((5, 20), np.int32)
    for row, text in zip(codepoints, TEXTS, strict=True):
        row[: len(text)] = [ord(character) for character in text]

    assert rows(tokenizer(np.array(TEXTS))) == IDS
    assert rows(graph(tf.constant(TEXTS))) == IDS
    assert rows(tokenizer(codepoints)) == IDS
    assert rows(graph(tf.constant(codepoints, tf.int64))) == IDS
    assert rows(next(iter(texts.batch(5).map(tokenizer)))) == IDS
    assert [a["token_ids"].numpy().tolist() for a in texts.map(tokenizer)] == IDS
    assert ragged(TEXTS)["token_ids"].to_list() == IDS
    assert [a["token_ids"].numpy().tolist() for a in texts.map(ragged)] == IDS


def test_at_most_bounds_the_padding(small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary)
    answer = tokenizer(TEXTS, at_most=3)
    assert answer["token_ids"].shape == (5, 3)
    assert rows(answer) == [row[:3] for row in IDS]
    assert tokenizer(TEXTS, at_most=9)["token_ids"].shape == (5, 5)
    ragged = tokenizer.copy(ragged=True)(TEXTS, at_most=3)
    assert ragged["token_ids"].to_list() == [row[:3] for row in IDS]


@pytest.mark.parametrize("line", ["'the fox ' * 131072", "'the' * 349525"])
def test_one_long_line_among_short_ones_takes_no_more_than_its_own(line):
    """1 MB beside 2,000 lines: padded to it, the ids alone would take 1 GB or more."""
    program = f"""
import resource
from bert_keras import BertPreprocessor, WordPieceTokenizer
tokenizer = WordPieceTokenizer({SMALL})
preprocessor = BertPreprocessor(tokenizer, 128)
preprocessor(["the fox"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert preprocessor(["the fox"] * 2000 + [{line}])["token_ids"].shape == (2001, 128)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(ran.stdout) < 300  # MB


def test_codepoints_that_are_none_are_dropped(small_vocabulary):
    codepoints = [[ord("t"), -1, ord("h"), 0x110000, ord("e"), 0xD800]]
    assert ids(WordPieceTokenizer(small_vocabulary), codepoints) == [[5]]


def test_invalid_utf8_is_dropped(small_vocabulary):
    assert ids(WordPieceTokenizer(small_vocabulary), b"t\xffh\xe2\x28e") == [1, 1, 1]
    assert ids(WordPieceTokenizer(small_vocabulary), b"th\xffe \xc3") == [5]


NON_DEFAULT = {
    "lowercase": False,
    "strip_accents": True,
    "special_tokens_in_text": ["[MASK]", "[SEP]"],
    "max_characters_per_word": 4,
    "special_tokens": ["[PAD]", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
    "sequence_length": 7,
    "offsets": "bytes",
    "special_tokens_mask": True,
    "rules": "google",
    "split_on_cjk": False,
    "normalization": "NFC",
    "never_split": ["fox"],
    "split_unknown_characters": True,
    "id_offset": 3,
    "engine": "stock",
}


def test_l05_serialization_keeps_every_option(tmp_path):
    tokens = [SMALL[0], "<unk>", *SMALL[2:]]
    tokenizer = WordPieceTokenizer(tokens, **NON_DEFAULT)
    again = WordPieceTokenizer.from_config(tokenizer.get_config())
    assert again.get_config() == tokenizer.get_config()
    text = keras.Input((), dtype="string")
    outputs = tokenizer(text)
    assert outputs["token_ids"].shape == (None, 7)
    assert outputs["offsets"].shape == (None, 7, 2)
    model = keras.Model(text, outputs)
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    layer = loaded.get_layer(tokenizer.name)
    assert layer.get_config() == tokenizer.get_config()
    assert {name: layer.get_config()[name] for name in NON_DEFAULT} == NON_DEFAULT
    texts = tf.constant(["the fox [MASK] brown", "Thé[SEP] quick"])
    for name, value in model(texts).items():
        np.testing.assert_array_equal(loaded(texts)[name], value)


def test_s05_model_export_needs_no_extra_call(small_vocabulary, tmp_path):
    text = keras.Input((), dtype="string")
    model = keras.Model(text, WordPieceTokenizer(small_vocabulary)(text))
    model.export(tmp_path / "saved", verbose=False)
    served = tf.saved_model.load(tmp_path / "saved").serve(tf.constant(TEXTS))
    assert rows(served) == IDS


def test_special_token_names_are_kept():
    names = SpecialTokens(unk="<unk>", pad="<pad>")
    vocabulary = Vocabulary(["<pad>", "<unk>", *SMALL[2:]], names)
    tokenizer = WordPieceTokenizer(vocabulary)
    again = WordPieceTokenizer.from_config(tokenizer.get_config())
    again.set_vocabulary(["<pad>", "<unk>", *SMALL[2:]])
    assert ids(again, "zzz the") == [1, 5]
    with pytest.raises(ValueError, match="Received: .PAD.*allowed: <pad>, <unk>"):
        WordPieceTokenizer(vocabulary, special_tokens=SpecialTokens())


def test_a_functional_model_refuses_what_cannot_work(small_vocabulary):
    text = keras.Input((), dtype="string")
    with pytest.raises(ValueError, match="ragged=True"):
        WordPieceTokenizer(small_vocabulary, ragged=True)(text)
    with pytest.raises(ValueError, match="string of shape"):
        WordPieceTokenizer(small_vocabulary)(keras.Input((3,), dtype="string"))


def test_an_empty_list_is_an_empty_batch(small_vocabulary):
    assert WordPieceTokenizer(small_vocabulary)([])["token_ids"].shape == (0, 0)


def test_bad_inputs_are_refused(small_vocabulary):
    with pytest.raises(ValueError, match="float32 of shape"):
        WordPieceTokenizer(small_vocabulary)([1.0])
    with pytest.raises(ValueError, match="has no vocabulary"):
        WordPieceTokenizer()("the")


def test_n18_a_word_with_a_rest_that_has_no_piece_is_one_unknown():
    """None of the pieces before the "z" is kept."""
    answer = WordPieceTokenizer(SMALL)("quickz brown")
    assert answer["token_ids"].numpy().tolist() == [1, 8, 9]
