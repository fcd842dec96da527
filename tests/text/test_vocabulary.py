"""The vocabulary file. Ids in the names (V01 ...) are those of the public reports."""

import hashlib
import json
import os
import subprocess
import sys

import keras
import pytest
from oracles import SMALL, needs_data, vocabulary_path

from bert_keras import SpecialTokens, Vocabulary, WordPieceTokenizer
from bert_keras.text.options import tokenizer_options

FOX = "The quick fox."


def written(tmp_path, tokens, newline="\n", start=b""):
    path = tmp_path / "vocab.txt"
    path.write_bytes(start + "".join(t + newline for t in tokens).encode())
    return path


def ids_of(path, text=FOX):
    return WordPieceTokenizer(path)(text)["token_ids"].numpy().tolist()


def test_v01_a_blank_line_inside_keeps_its_number(tmp_path):
    path = written(tmp_path, [*SMALL[:6], "", *SMALL[6:]])
    assert ids_of(path) == [5, 7, 8, 11, 12]


def test_v01_blank_lines_at_the_end_are_ignored(tmp_path):
    path = written(tmp_path, [*SMALL, "", "", ""])
    assert ids_of(path) == [5, 6, 7, 10, 11]
    assert len(Vocabulary.read(path)) == 12


@pytest.mark.parametrize(
    "separator", "\u2028 \u2029 \x85 \x0b \x0c \x1c \x1d \x1e".split(" ")
)
def test_v02_a_line_ends_at_a_line_feed_only(tmp_path, separator):
    path = written(tmp_path, [*SMALL[:6], separator, *SMALL[6:]])
    assert ids_of(path) == [5, 7, 8, 11, 12]
    assert len(Vocabulary.read(path)) == 13


def test_v03_a_duplicate_is_refused_with_both_lines(tmp_path):
    path = written(tmp_path, [*SMALL[:6], "the", *SMALL[6:]])
    with pytest.raises(ValueError, match=r"'the' on lines 6 and 7"):
        Vocabulary.read(path)


def test_v03_the_last_one_may_win(tmp_path):
    path = written(tmp_path, [*SMALL[:6], "the", *SMALL[6:]])
    vocabulary = Vocabulary.read(path, duplicates="last")
    assert len(vocabulary) == 13
    assert ids_of(vocabulary) == [6, 7, 8, 11, 12]
    with pytest.raises(ValueError, match="duplicates='first'"):
        Vocabulary.read(path, duplicates="first")


@needs_data
def test_v04_the_locale_does_not_matter(tmp_path):
    out = tmp_path / "again.txt"
    code = (
        "import sys; from bert_keras.text.vocabulary import Vocabulary\n"
        "v = Vocabulary.read(sys.argv[1]); v.write(sys.argv[2]); print(len(v))"
    )
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "cp1252",
    }
    source = vocabulary_path("uncased")
    done = subprocess.run(
        [sys.executable, "-c", code, source, out],
        env=environment,
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == [b"30522"]
    assert out.read_bytes() == source.read_bytes()
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    assert digest.startswith("07eced37")


@pytest.mark.parametrize("missing", ["[MASK]", "[UNK]", "[PAD]"])
def test_v07_v08_a_missing_special_token_is_named(missing):
    with pytest.raises(ValueError, match=rf"Missing: \{missing}"):
        Vocabulary([token for token in SMALL if token != missing])


def test_v07_all_missing_ones_are_named_and_other_names_work():
    with pytest.raises(ValueError, match=r"Missing: \[CLS\], \[SEP\];"):
        Vocabulary(["[PAD]", "[UNK]", "[MASK]", "a"])
    names = SpecialTokens(unk="<unk>")
    vocabulary = Vocabulary([*SMALL[:1], "<unk>", *SMALL[2:]], names)
    tokenizer = WordPieceTokenizer(vocabulary)
    assert tokenizer("zzz")["token_ids"].numpy().tolist() == [1]


def test_bom_and_crlf_are_accepted(tmp_path):
    path = written(tmp_path, SMALL, newline="\r\n", start=b"\xef\xbb\xbf")
    assert Vocabulary.read(path).tokens == tuple(SMALL)


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\nna\xefve\n")
    with pytest.raises(ValueError, match="line 2"):
        Vocabulary.read(path)


def test_written_and_read_it_is_the_same(tmp_path):
    vocabulary = Vocabulary([*SMALL[:6], "", "\u2028", *SMALL[6:]])
    vocabulary.write(tmp_path / "vocab.txt")
    assert Vocabulary.read(tmp_path / "vocab.txt") == vocabulary


@pytest.mark.parametrize("token", ["a\nb", "a\r", "\ud800"])
def test_a_token_that_is_no_line_is_refused(token):
    with pytest.raises(ValueError, match="on line 13"):
        Vocabulary([*SMALL, token])


def test_extend_at_the_end_or_into_unused_places():
    vocabulary = Vocabulary(["[unused0]", *SMALL, "[unused1]", "[unusedx]"])
    longer = vocabulary.extend(["dog", "##s"])
    assert longer.tokens == (*vocabulary.tokens, "dog", "##s")
    filled = vocabulary.extend(["dog", "##s", "cat"], into_unused=True)
    assert filled.tokens == ("dog", *SMALL, "##s", "[unusedx]", "cat")
    assert vocabulary.tokens[0] == "[unused0]"


@pytest.mark.parametrize("new", [["fox"], ["a", "a"], [""]])
def test_extend_refuses_what_is_there(new):
    with pytest.raises(ValueError, match="must be new"):
        Vocabulary(SMALL).extend(new)


def test_nothing_is_half_written(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        Vocabulary(SMALL).write(tmp_path / "absent" / "vocab.txt")
    (tmp_path / "vocab.txt").write_text("before")

    def fails(self, data):
        with open(self, "wb") as file:
            file.write(data[:5])
        raise OSError("no space left")

    monkeypatch.setattr(type(tmp_path), "write_bytes", fails)
    with pytest.raises(OSError, match="no space"):
        Vocabulary(SMALL).write(tmp_path / "vocab.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["vocab.txt"]
    assert (tmp_path / "vocab.txt").read_text() == "before"


def test_pad_need_not_be_the_first(tmp_path):
    vocabulary = Vocabulary([*SMALL[1:], "[PAD]"])
    assert vocabulary.special_ids.pad == 11
    ids = WordPieceTokenizer(vocabulary)(["the", "the fox"])["token_ids"]
    assert ids.numpy().tolist() == [[4, 11], [4, 9]]


class TestOptionsTravelWithIt:
    options = tokenizer_options({"lowercase": False, "never_split": ["fox"]})

    def test_written_and_read(self, tmp_path):
        names = SpecialTokens(unk="<unk>")
        tokens = [SMALL[0], "<unk>", *SMALL[2:]]
        vocabulary = Vocabulary(tokens, names, options=self.options)
        vocabulary.write(tmp_path / "vocab.txt")
        assert (tmp_path / "vocab.txt").read_text() == "\n".join([*tokens, ""])
        stored = json.loads((tmp_path / "vocab.options.json").read_text())
        assert stored["lowercase"] is False
        assert stored["never_split"] == ["fox"]
        assert stored["special_tokens"] == list(names)
        assert Vocabulary.read(tmp_path / "vocab.txt") == vocabulary
        tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt")
        assert tokenizer.options == self.options
        assert tokenizer.settings()["special_tokens"] == list(names)

    def test_those_of_another_vocabulary_do_not_stay(self, tmp_path):
        Vocabulary(SMALL, options=self.options).write(tmp_path / "vocab.txt")
        Vocabulary(SMALL).write(tmp_path / "vocab.txt")
        assert Vocabulary.read(tmp_path / "vocab.txt").options is None
        assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]

    def test_two_vocabularies_in_one_folder(self, tmp_path):
        Vocabulary(SMALL, options=self.options).write(tmp_path / "vocab.en")
        Vocabulary(SMALL).write(tmp_path / "vocab.de")
        assert Vocabulary.read(tmp_path / "vocab.en").options == self.options
        assert Vocabulary.read(tmp_path / "vocab.de").options is None

    def test_a_failed_write_leaves_both_files_as_they_were(self, tmp_path, monkeypatch):
        path = tmp_path / "vocab.txt"
        before = Vocabulary(SMALL, options=self.options)
        before.write(path)
        monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Vocabulary([*SMALL, "dog"], options=tokenizer_options()).write(path)
        monkeypatch.undo()
        assert Vocabulary.read(path) == before

    def test_extending_into_unused_leaves_words_of_the_user(self):
        tokens = [*SMALL, "[unused0]", "[unused1]"]
        options = tokenizer_options({"never_split": ["[unused0]"]})
        extended = Vocabulary(tokens, options=options).extend(["dog"], into_unused=True)
        assert extended[12:] == ("[unused0]", "dog")

    def test_extending_keeps_them(self):
        extended = Vocabulary(SMALL, options=self.options).extend(["dog"])
        assert extended.options == self.options

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "does not hold the options of a tokenizer"),
            ("[]", "does not hold the options"),
            ('{"special_tokens": ["a"], "rules": "x"}', "rules='x'"),
            ('{"special_tokens": ["a", "b", "c", "d", "e", "f"]}', "does not hold"),
            ('{"special_tokens": ["a"], "casing": 1}', "Unknown.*'casing'"),
        ],
    )
    def test_a_malformed_file_is_refused(self, tmp_path, text, message):
        Vocabulary(SMALL).write(tmp_path / "vocab.txt")
        (tmp_path / "vocab.options.json").write_text(text)
        with pytest.raises(ValueError, match=f"vocab.options.json.*{message}"):
            Vocabulary.read(tmp_path / "vocab.txt")

    def test_other_names_of_special_tokens_are_refused(self, tmp_path):
        Vocabulary(SMALL, options=self.options).write(tmp_path / "vocab.txt")
        with pytest.raises(ValueError, match="other special tokens.*<s>"):
            Vocabulary.read(tmp_path / "vocab.txt", SpecialTokens(cls="<s>"))

    def test_a_model_file_holds_them(self, tmp_path):
        text = keras.Input((), dtype="string")
        tokenizer = WordPieceTokenizer(Vocabulary(SMALL, options=self.options))
        keras.Model(text, tokenizer(text)).save(tmp_path / "m.keras")
        loaded = keras.saving.load_model(tmp_path / "m.keras")
        assert loaded.get_layer(tokenizer.name).options == self.options
