"""The tokenizer layer: ids, options, and every way to call it."""

import contextlib

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


# Ids under bert-base-uncased, from the public reports.
REPORTED = {
    "N01": ("café naïve", [7668, 15743]),
    "N03": ("한국", [1469, 30006, 30021, 29991, 30014, 30020]),
    "N04": ("パンダ", [1718, 30263, 30235]),
    "N09": ("one\r\ntwo", [2028, 2048]),
    "N13": ("Việt Sử", [19710, 10514]),
    "N14": ("nice🚀", [100]),
    "N14b": ("big 🚀 day", [2502, 100, 2154]),
    "N16": ("[mask]", [1031, 7308, 1033]),
    "N20": ("\u200b\x01", []),
    "O06": ("\ufeffhello", [7592]),
}


@needs_data
@pytest.mark.parametrize("report", REPORTED)
def test_reported(report, uncased):
    text, expected = REPORTED[report]
    assert ids(WordPieceTokenizer(uncased), text) == expected


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


def test_every_way_to_call_gives_the_same(small_vocabulary):
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


def test_codepoints_that_are_none_are_dropped(small_vocabulary):
    codepoints = [[ord("t"), -1, ord("h"), 0x110000, ord("e"), 0xD800]]
    assert ids(WordPieceTokenizer(small_vocabulary), codepoints) == [[5]]


def test_invalid_utf8_is_dropped(small_vocabulary):
    assert ids(WordPieceTokenizer(small_vocabulary), b"t\xffh\xe2\x28e") == [1, 1, 1]
    assert ids(WordPieceTokenizer(small_vocabulary), b"th\xffe \xc3") == [5]


@needs_data
def test_offsets_are_the_library_s(uncased):
    texts = ["Tōkyō nǚ, it's 中文 unbelievableness!", "caf\u0065\u0301 x", " \ta  b "]
    answer = WordPieceTokenizer(uncased, offsets=True)(texts)
    expected = reference_tokenizer(uncased, lowercase=True).encode_batch(
        texts, add_special_tokens=False
    )
    for row, count, encoding in zip(
        answer["offsets"].numpy(), answer["counts"].numpy(), expected, strict=True
    ):
        assert [tuple(pair) for pair in row[:count].tolist()] == encoding.offsets


def test_offsets_of_padding_are_zero_and_ragged_ones_agree(small_vocabulary):
    dense = WordPieceTokenizer(small_vocabulary, offsets=True)(TEXTS)["offsets"]
    ragged = WordPieceTokenizer(small_vocabulary, offsets=True, ragged=True)(TEXTS)
    assert dense[1].numpy().tolist() == [[0, 0]] * 5
    assert dense[4, :3].numpy().tolist() == [[0, 3], [5, 8], [9, 12]]
    assert ragged["offsets"].to_list()[4] == [[0, 3], [5, 8], [9, 12]]


class TestSpecialTokensInText:
    @needs_data
    def test_n16_off_and_on(self, uncased):
        text = "we went to [MASK] by train"
        plain = [2057, 2253, 2000, 1031, 7308, 1033, 2011, 3345]
        assert ids(WordPieceTokenizer(uncased), text) == plain
        on = WordPieceTokenizer(uncased, special_tokens_in_text=True, offsets=True)
        answer = on(text)
        special = [2057, 2253, 2000, 103, 2011, 3345]
        assert answer["token_ids"].numpy().tolist() == special
        assert answer["offsets"].numpy()[3].tolist() == [11, 17]
        assert ids(on, "x[SEP]y") == [1060, 102, 1061]
        assert ids(on, "[mask]") == [1031, 7308, 1033]

    def test_only_those_named(self, small_vocabulary):
        some = WordPieceTokenizer(small_vocabulary, special_tokens_in_text=["[MASK]"])
        assert ids(some, "the [MASK] [SEP]") == [5, 4, 1, 1, 1]

    def test_unknown_names_are_refused(self, small_vocabulary):
        with pytest.raises(ValueError, match=r"\[DOC\].*allowed.*\[MASK\]"):
            WordPieceTokenizer(small_vocabulary, special_tokens_in_text=["[DOC]"])

    def test_names_that_overlap_are_refused(self):
        names = SpecialTokens(cls="ab", sep="bc")
        vocabulary = Vocabulary(["[PAD]", "[UNK]", "ab", "bc", "[MASK]"], names)
        with pytest.raises(ValueError, match="'ab' and 'bc'"):
            WordPieceTokenizer(vocabulary, special_tokens_in_text=True)


def test_n02_two_switches(tmp_path):
    tokens = [*SMALL, "été", "ete", "Été", "Ete"]

    def token(**switches):
        with contextlib.ExitStack() as stack:
            if switches["lowercase"]:
                stack.enter_context(pytest.warns(UserWarning, match="looks cased"))
            tokenizer = WordPieceTokenizer(tokens, **switches)
        return tokens[ids(tokenizer, "Été")[0]]

    assert token(lowercase=True) == "ete"
    assert token(lowercase=True, strip_accents=False) == "été"
    assert token(lowercase=False) == "Été"
    assert token(lowercase=False, strip_accents=True) == "Ete"


@pytest.mark.parametrize(("limit", "length", "is_cut"), [(5, 5, True), (5, 6, False)])
def test_n15_the_limit_counts_characters(limit, length, is_cut):
    tokenizer = WordPieceTokenizer(
        [*SMALL, "и", "##и"], max_characters_per_word=limit, strip_accents=False
    )
    expected = [12, *[13] * (length - 1)] if is_cut else [1]
    assert ids(tokenizer, "и" * length) == expected


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
}


def test_serialization_keeps_every_option(tmp_path):
    tokens = [SMALL[0], "<unk>", *SMALL[2:]]
    tokenizer = WordPieceTokenizer(tokens, **NON_DEFAULT)
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
    with pytest.raises(ValueError, match="<pad>, <unk>.*allowed: .PAD."):
        WordPieceTokenizer(vocabulary, special_tokens=SpecialTokens())


def test_a_functional_model_refuses_what_cannot_work(small_vocabulary):
    text = keras.Input((), dtype="string")
    with pytest.raises(ValueError, match="ragged=True"):
        WordPieceTokenizer(small_vocabulary, ragged=True)(text)
    with pytest.raises(ValueError, match="string of shape"):
        WordPieceTokenizer(small_vocabulary)(keras.Input((3,), dtype="string"))


def test_an_empty_list_is_an_empty_batch(small_vocabulary):
    assert WordPieceTokenizer(small_vocabulary)([])["token_ids"].shape == (0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 0}, "sequence_length=0.*at least 1"),
        ({"max_characters_per_word": "x"}, "max_characters_per_word='x'"),
        ({"rules": "bert"}, "rules='bert'.*'huggingface'"),
    ],
)
def test_bad_options_are_refused(small_vocabulary, options, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(small_vocabulary, **options)


def test_bad_inputs_are_refused(small_vocabulary):
    with pytest.raises(ValueError, match="float32 of shape"):
        WordPieceTokenizer(small_vocabulary)([1.0])
    with pytest.raises(ValueError, match="has no vocabulary"):
        WordPieceTokenizer()("the")
