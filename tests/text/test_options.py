"""The tokenizer's options, one by one. Ids in names are those of the public reports."""

import contextlib
import random
import re

import pytest
import tensorflow as tf
from oracles import SMALL, needs_data, vocabulary_path

from bert_keras import SpecialTokens, Vocabulary, WordPieceTokenizer
from bert_keras.text.options import tokenizer_options


def ids_of(answer):
    return answer["token_ids"].to_list()


def ids(tokenizer, text):
    return tokenizer(text)["token_ids"].numpy().tolist()


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

    def test_names_with_spaces_are_refused(self):
        names = SpecialTokens(mask="x ")
        vocabulary = Vocabulary([*SMALL, "x "], names)
        with pytest.raises(ValueError, match="'x '; allowed: words without spaces"):
            WordPieceTokenizer(vocabulary, special_tokens_in_text=True)


class TestNeverSplit:
    @needs_data
    def test_n16_a_word_of_the_user(self, uncased):
        tokenizer = WordPieceTokenizer(uncased, never_split=["[unused1]"])
        assert ids(tokenizer, "[unused1] x") == [2, 1060]
        assert ids(WordPieceTokenizer(uncased), "[unused1] x") != [2, 1060]

    @pytest.mark.parametrize("rules", ["huggingface", "google"])
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("US", ["US"]),
            ("us", ["us"]),
            ("USA", ["USA"]),
            ("USAs", ["[UNK]"]),  # no part of a longer word
            ("aUS US-US", ["[UNK]", "US", "-", "US"]),
            ("<e>fox<e>", ["<e>", "fox", "<e>"]),  # its ends are no letters
            ("C++ C+ C+++", ["C++", "[UNK]", "+", "C++", "+"]),
            ("éUS US\u0301", ["[UNK]", "us"]),  # a mark belongs to the letter
            ("US- 中US中", ["US", "-", "[UNK]", "US", "[UNK]"]),  # words of their own
        ],
    )
    def test_where_a_word_begins_and_ends(self, text, expected, rules):
        words = ("US", "USA", "C++", "<e>")
        tokens = [*SMALL, *words, "us", "-", "+", "<", ">", "e"]
        options = {"never_split": words, "rules": rules}
        tokenizer = WordPieceTokenizer(Vocabulary(tokens), **options)
        assert [tokens[i] for i in ids(tokenizer, text)] == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("that US Siemens", ["that", "US", "Siemens"]),
            ("USiemens", ["[UNK]"]),
            ("....", ["...", "."]),  # the first, and then what is left
            ("......", ["...", "..."]),
            ("<a><b><a>", ["<a><b>", "<a>"]),  # the longest
            ("<b><a><b>", ["<b><a>", "<b>"]),  # the one that begins first
            ("-=-=-", ["-=-", "=", "-"]),
            ("x<a", ["[UNK]", "<", "[UNK]"]),
        ],
    )
    def test_words_that_overlap(self, text, expected):
        words = [
            "that",
            "US",
            "Siemens",
            "...",
            "<a><b>",
            "<b><a>",
            "<a>",
            "<b>",
            "-=-",
        ]
        tokens = [*SMALL, *words, "-", "=", "<"]
        tokenizer = WordPieceTokenizer(Vocabulary(tokens), never_split=words)
        assert [tokens[i] for i in ids(tokenizer, text)] == expected
        # In rows, and with a word at the end and the start of each.
        rows = WordPieceTokenizer(Vocabulary(tokens), never_split=words, ragged=True)
        assert ids_of(rows([text] * 3)) == [ids(tokenizer, text)] * 3

    def test_many_words_in_long_text(self):
        """All that a regular expression finds, the longest first, is found."""
        draw = random.Random(1)
        words = {
            "".join(draw.choices("ab-<>", k=draw.randint(1, 5))) for _ in range(300)
        }
        tokens = [*SMALL, *sorted(words)]
        tokenizer = WordPieceTokenizer(tokens, never_split=sorted(words))
        letter, found = "[ab]", []
        for word in sorted(words, key=len, reverse=True):
            before = f"(?<!{letter})" if word[0] in "ab" else ""
            after = f"(?!{letter})" if word[-1] in "ab" else ""
            found.append(before + re.escape(word) + after)
        pattern = re.compile("|".join(found))
        for _ in range(200):
            text = "".join(draw.choices("ab-<> ", k=40))
            expected = [tokens.index(word) for word in pattern.findall(text)]
            answered = [i for i in ids(tokenizer, text) if tokens[i] in words]
            assert answered == expected

    def test_what_the_vocabulary_lacks_is_refused(self, small_vocabulary):
        with pytest.raises(ValueError, match="Missing in the vocabulary: covid, C19"):
            WordPieceTokenizer(small_vocabulary, never_split=["covid", "fox", "C19"])

    @pytest.mark.parametrize("words", ["fox", ["a b"], [""], [3], 5])
    def test_what_is_no_list_of_words_is_refused(self, small_vocabulary, words):
        with pytest.raises(ValueError, match="never_split is not allowed.*words"):
            WordPieceTokenizer(small_vocabulary, never_split=words)


def test_n02_two_switches():
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


class TestN15TheLimitCountsCharacters:
    tokens = (*SMALL, "a", "##a", "и", "##и")

    @pytest.mark.parametrize(
        ("options", "limit"),
        [
            ({}, 100),
            ({"rules": "google"}, 200),
            ({"max_characters_per_word": 5}, 5),
            ({"rules": "google", "max_characters_per_word": 100}, 100),
        ],
    )
    @pytest.mark.parametrize(("letter", "first"), [("a", 12), ("и", 14)])
    def test_at_the_limit_and_past_it(self, options, limit, letter, first):
        tokenizer = WordPieceTokenizer(self.tokens, **options)
        cut = [first, *[first + 1] * (limit - 1)]
        assert ids(tokenizer, letter * limit) == cut
        assert ids(tokenizer, letter * (limit + 1)) == [1]

    @needs_data
    def test_under_the_published_vocabulary(self, uncased):
        for rules, limit in (("huggingface", 100), ("google", 200)):
            tokenizer = WordPieceTokenizer(uncased, rules=rules)
            for length in (100, 101, 200, 201):
                is_unknown = ids(tokenizer, "a" * length) == [100]
                assert is_unknown == (length > limit)
            assert len(ids(tokenizer, "и" * 51)) > 1


def test_n14_unknown_characters_may_be_split_off():
    """The pieces are those of tf-text, which writes an [UNK] in a word "##[UNK]"."""
    tensorflow_text = pytest.importorskip("tensorflow_text")
    tokens = [*SMALL, "a", "##b", "##c", "nice", "##z"]
    ours = WordPieceTokenizer(tokens, split_unknown_characters=True)
    numbers = tf.range(len(tokens), dtype=tf.int64)
    known = tf.lookup.KeyValueTensorInitializer(tokens, numbers)
    theirs = tensorflow_text.WordpieceTokenizer(
        tf.lookup.StaticVocabularyTable(known, 1),
        split_unknown_characters=True,
        token_out_type=tf.string,
    )
    for text in "nice🚀 🚀🚀 a🚀b aq qa ac🚀z b az 🚀b quick".split():
        pieces = theirs.tokenize([text]).flat_values.numpy()
        pieces = [piece.decode().replace("##[UNK]", "[UNK]") for piece in pieces]
        assert [tokens[i] for i in ids(ours, text)] == pieces


@needs_data
def test_n14_under_the_published_vocabulary(uncased):
    tokenizer = WordPieceTokenizer(uncased, split_unknown_characters=True, offsets=True)
    answer = tokenizer("nice🚀")
    assert answer["token_ids"].numpy().tolist() == [3835, 100]
    assert answer["offsets"].numpy().tolist() == [[0, 4], [4, 5]]


class TestN19TheCaseIsTheVocabularys:
    tokens = (*SMALL, "Hello", "World", "hello")

    def test_it_is_stored_and_used(self, tmp_path):
        cased = WordPieceTokenizer(self.tokens, lowercase=False)
        cased.vocabulary.write(tmp_path / "vocab.txt")
        tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt")
        assert ids(tokenizer, "Hello") == [12]
        with pytest.raises(ValueError, match="lowercase=True; stored.*lowercase=False"):
            WordPieceTokenizer(tmp_path / "vocab.txt", lowercase=True)
        bare = Vocabulary.read(tmp_path / "vocab.txt").with_options(None)
        with pytest.warns(UserWarning, match="looks cased"):
            assert ids(WordPieceTokenizer(bare, lowercase=True), "Hello") == [14]

    def test_a_cased_vocabulary_warns(self):
        with pytest.warns(UserWarning, match="2 of 15 tokens.*'Hello'"):
            WordPieceTokenizer(self.tokens)

    @needs_data
    @pytest.mark.parametrize("name", ["uncased", "chinese"])
    def test_a_published_one_that_is_not_cased(self, name, recwarn):
        WordPieceTokenizer(vocabulary_path(name))
        assert not recwarn

    @needs_data
    @pytest.mark.parametrize("name", ["cased", "multilingual-cased"])
    def test_a_published_one_that_is(self, name):
        with pytest.warns(UserWarning, match="looks cased"):
            WordPieceTokenizer(vocabulary_path(name))


def test_id_offset_moves_every_id(small_vocabulary):
    tokenizer = WordPieceTokenizer(small_vocabulary, id_offset=100)
    answer = tokenizer(["the fox zzz", "the"])
    assert answer["token_ids"].numpy().tolist() == [[105, 110, 101], [105, 100, 100]]
    assert tokenizer.special_ids == SpecialTokens(100, 101, 102, 103, 104)
    assert tokenizer.ids_end == 112
    assert tokenizer.detokenize([[105, 110]]).numpy().tolist() == [b"the fox"]


def test_the_mask_of_special_tokens(small_vocabulary):
    options = {"special_tokens_in_text": True, "special_tokens_mask": True}
    tokenizer = WordPieceTokenizer(small_vocabulary, **options)
    texts = ["the [MASK] zzz [SEP]", "[CLS]"]
    expected = [[0, 1, 0, 1], [1, 1, 1, 1]]  # [UNK] stands for text; padding does not
    assert tokenizer(texts)["special_tokens_mask"].numpy().tolist() == expected
    ragged = tokenizer.copy(ragged=True)(texts)["special_tokens_mask"]
    assert ragged.to_list() == [[0, 1, 0, 1], [1]]


def test_nfc_finds_accents_however_they_are_written():
    tokens = [*SMALL, "é", "한"]
    plain = WordPieceTokenizer(tokens, lowercase=False)
    nfc = plain.copy(normalization="NFC", offsets=True)
    assert ids(plain, "e\u0301") == [1]
    answer = nfc("x e\u0301 \u1112\u1161\u11ab é")
    assert answer["token_ids"].numpy().tolist() == [1, 12, 13, 12]
    assert answer["offsets"].numpy().tolist() == [[0, 1], [2, 4], [5, 8], [9, 10]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_length": 0}, "sequence_length=0.*at least 1"),
        ({"sequence_length": True}, "sequence_length=True.*at least 1"),
        ({"max_characters_per_word": "x"}, "max_characters_per_word='x'"),
        ({"rules": "bert"}, "rules='bert'; allowed: 'huggingface', 'google'"),
        ({"lowercase": "yes"}, "lowercase='yes'; allowed: True, False"),
        ({"normalization": "NFKC"}, "normalization='NFKC'; allowed: None, 'NFC'"),
        ({"id_offset": -1}, "id_offset=-1.*at least 0"),
        ({"id_offset": 2**31}, "id_offset=2147483648.*at most 1073741824"),
        ({"max_characters_per_word": 2**40}, "max_characters_per_word=.*at most"),
        ({"rules": ["google"]}, r"rules=\['google'\]; allowed: 'huggingface'"),
        ({"special_tokens_in_text": "[MASK]"}, "allowed: True, False, or a list"),
        ({"offsets": "words"}, "offsets='words'.*'characters', 'bytes'"),
        ({"engine": "fast"}, "engine='fast'.*'stock', 'tf_text'"),
    ],
)
def test_bad_options_are_refused(small_vocabulary, options, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(small_vocabulary, **options)


def test_a_layer_without_vocabulary_keeps_what_was_given(tmp_path):
    stored = Vocabulary(SMALL).with_options(
        tokenizer_options({"lowercase": False, "never_split": ["fox"], "id_offset": 5})
    )
    stored.write(tmp_path / "vocab.txt")
    empty = WordPieceTokenizer(max_characters_per_word=9)
    again = WordPieceTokenizer.from_config(empty.get_config())
    for tokenizer in (empty, again):
        tokenizer.set_vocabulary(tmp_path / "vocab.txt")
        assert ids(tokenizer, "The the fox") == [6, 10, 15]
        assert tokenizer.options.max_characters_per_word == 9


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="'lower_case'; allowed: rules, lowercase"):
        tokenizer_options({"lower_case": True})
