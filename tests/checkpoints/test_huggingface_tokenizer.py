"""The tokenizer's options come along, and go out again as `tokenizers` reads them."""

import json

import pytest
from checkpoints.models import TEXTS, TOKENS, preprocessor
from oracles import needs_data, shared_lines, vocabulary_path

from bert_keras import BertPreprocessor, Vocabulary, WordPieceTokenizer
from bert_keras.checkpoints.huggingface_tokenizer import read_preprocessor
from bert_keras.checkpoints.huggingface_tokenizer_out import write_preprocessor
from bert_keras.features import SpecialTokens

CONFIG, FAST = "tokenizer_config.json", "tokenizer.json"
CASED = [*TOKENS, "The", "Fox"]


@pytest.fixture
def folder(tmp_path):
    """A folder with a vocabulary in it, and nothing else."""
    Vocabulary(TOKENS).write(tmp_path / "vocab.txt")
    return tmp_path


def put(path, **fields):
    """Writes JSON, or changes fields of what is there."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(found | fields), "utf-8")


def options_of(folder, length: int = 16):
    return read_preprocessor(folder, length).tokenizer.options


def exported(folder, **options):
    """Writes a tokenizer, without the file that only this package reads."""
    write_preprocessor(preprocessor(**options), folder)
    (folder / "vocab.options.json").unlink()
    return folder


def test_there_is_no_vocabulary(tmp_path):
    assert read_preprocessor(tmp_path, 16) is None


def test_n19_the_vocabulary_tells_the_casing(folder):
    assert options_of(folder).lowercase
    Vocabulary(CASED).write(folder / "vocab.txt")
    options = options_of(folder)
    assert (options.lowercase, options.strip_accents) == (False, False)


@pytest.mark.filterwarnings("ignore:The vocabulary looks cased")
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"do_lower_case": True}, (True, True, True)),
        ({"do_lower_case": False}, (False, False, True)),
        ({"do_lower_case": True, "strip_accents": False}, (True, False, True)),
        ({"do_lower_case": False, "strip_accents": True}, (False, True, True)),
        ({"do_lower_case": True, "strip_accents": None}, (True, True, True)),
        ({"tokenize_chinese_chars": False}, (False, False, False)),
    ],
)
def test_options_of_the_config(folder, fields, expected):
    Vocabulary(CASED).write(folder / "vocab.txt")
    put(folder / CONFIG, **fields)
    options = options_of(folder)
    assert options.rules == "huggingface"
    found = (options.lowercase, options.strip_accents, options.split_on_cjk)
    assert found == expected


@pytest.mark.parametrize(
    "options",
    [
        {"lowercase": False},
        {"strip_accents": False},
        {"split_on_cjk": False},
        {"normalization": "NFC", "lowercase": False},
        {"max_characters_per_word": 130},
        {"never_split": ["fox", "[unused0]"]},
    ],
)
def test_options_of_the_fast_tokenizer(folder, options):
    exported(folder, **options)
    (folder / CONFIG).unlink()
    (folder / "vocab.txt").unlink()
    again = read_preprocessor(folder, 16).tokenizer
    assert again.options == preprocessor(**options).tokenizer.options
    assert again.vocabulary.tokens == tuple(TOKENS)


def test_the_config_is_asked_first(folder):
    exported(folder, lowercase=False)
    put(folder / CONFIG, do_lower_case=True, strip_accents=False)
    options = options_of(folder)
    assert (options.lowercase, options.strip_accents) == (True, False)


def test_text_that_sentence_transformers_lower_cases(folder):
    put(folder / CONFIG, do_lower_case=False)
    put(folder / "sentence_bert_config.json", do_lower_case=True)
    assert options_of(folder).lowercase


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ({}, 16),
        ({CONFIG: {"model_max_length": 10}}, 10),
        ({CONFIG: {"model_max_length": 1000000000000000019884624838656}}, 16),
        ({CONFIG: {"model_max_length": 1e30}}, 16),
        ({CONFIG: {"model_max_length": 512}}, 16),
        ({"sentence_bert_config.json": {"max_seq_length": 9}}, 9),
        ({"sentence_bert_config.json": {"max_seq_length": None}}, 16),
        ({FAST: {"truncation": {"max_length": 8}}}, 8),
        ({FAST: {"truncation": {"max_length": 8}}, CONFIG: {"model_max_length": 9}}, 9),
    ],
)
def test_rows_are_cut_at_the_least_limit(folder, lengths, expected):
    exported(folder)
    (folder / CONFIG).unlink()
    for name, fields in lengths.items():
        put(folder / name, **fields)
    assert read_preprocessor(folder, 16).sequence_length == expected


def test_names_of_special_tokens(folder):
    names = SpecialTokens("<pad>", "<unk>", "<cls>", "<sep>", "<mask>")
    Vocabulary([*names, *TOKENS[5:]], names).write(folder / "vocab.txt")
    fields = {f"{name}_token": token for name, token in names._asdict().items()}
    fields["mask_token"] = {"content": "<mask>", "lstrip": False}
    put(folder / CONFIG, **fields)
    found = read_preprocessor(folder, 16, names_in_text=("mask",)).tokenizer
    assert found.vocabulary.special_tokens == names
    assert found.options.special_tokens_in_text == ("<mask>",)


def test_v03_of_a_token_on_two_lines_the_last_counts(folder):
    text = "\n".join([*TOKENS, "the"]) + "\n"
    (folder / "vocab.txt").write_bytes(text.encode())
    found = read_preprocessor(folder, 32)
    assert found("the")["token_ids"].numpy().tolist() == [2, len(TOKENS), 3]


def test_added_tokens_are_recognised_as_they_are_written(folder):
    put(folder / "added_tokens.json", **{"[E1]": len(TOKENS), "[E2]": len(TOKENS) + 2})
    found = read_preprocessor(folder, 16)
    assert found.tokenizer.options.never_split == ("[E1]", "[E2]")
    ids = found("the [E2][E1] [e1]")["token_ids"].numpy().tolist()
    assert ids[:4] == [2, 5, len(TOKENS) + 2, len(TOKENS)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", {"type": "BPE"}),
        ("model", {"type": "WordPiece", "continuing_subword_prefix": "@@"}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("pre_tokenizer", None),
        ("normalizer", {"type": "Lowercase"}),
        ("normalizer", None),
        (
            "normalizer",
            {
                "type": "Sequence",
                "normalizers": [{"type": "NFKC"}, {"type": "BertNormalizer"}],
            },
        ),
        ("normalizer", {"type": "BertNormalizer", "clean_text": False}),
    ],
)
def test_a_tokenizer_of_another_kind(folder, field, value):
    exported(folder)
    put(folder / FAST, **{field: value})
    with pytest.raises(ValueError, match=r"tokenizer\.json .*Received: .*; allowed: "):
        read_preprocessor(folder, 16)


@pytest.mark.parametrize("ids", [{"a": 0, "b": 0}, {"a": "0"}, {"a": -1}, {"a": 1.5}])
def test_ids_that_are_none(folder, ids):
    exported(folder)
    model = json.loads((folder / FAST).read_text("utf-8"))["model"]
    put(folder / FAST, model={**model, "vocab": ids}, added_tokens=[])
    with pytest.raises(ValueError, match="does not give every token an id of its own"):
        read_preprocessor(folder, 16)


@pytest.mark.parametrize(
    ("option", "value"),
    [("rules", "google"), ("split_unknown_characters", True), ("id_offset", 1)],
)
def test_what_hugging_face_cannot_do(tmp_path, option, value):
    message = f"Hugging Face cannot .*Received: {option}={value!r}; allowed: {option}="
    with pytest.raises(ValueError, match=message):
        write_preprocessor(preprocessor(**{option: value}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_typed_special_tokens_are_text_there_too(tmp_path):
    for in_text in (False, True, ["[MASK]"]):
        write_preprocessor(preprocessor(special_tokens_in_text=in_text), tmp_path)
        config = json.loads((tmp_path / CONFIG).read_text("utf-8"))
        assert config["split_special_tokens"] == (in_text is False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lowercase": False},
        {"strip_accents": False, "split_on_cjk": False},
        {"normalization": "NFC", "lowercase": False},
        {"never_split": ["[unused0]", "fox"], "max_characters_per_word": 130},
    ],
)
def test_ids_of_tokenizers(tmp_path, options):
    tokenizers = pytest.importorskip("tokenizers")
    ours = preprocessor(300, special_tokens_in_text=True, **options)
    write_preprocessor(ours, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / FAST))
    assert theirs.get_vocab_size() == len(TOKENS)
    texts = [*TEXTS, "foxy fox [unused0] e\u0301 É", "[MASK]the[SEP]"]
    others = texts[::-1]
    check_equal(ours(texts), theirs.encode_batch(texts))
    pairs = list(zip(texts, others, strict=True))
    check_equal(ours(texts, others), theirs.encode_batch(pairs))


def check_equal(features: dict, encodings: list) -> None:
    """Fails unless rows, without their padding, are those of `tokenizers`."""
    ids, segments, masks = (value.numpy() for value in features.values())
    rows = zip(ids, segments, masks == 1, encodings, strict=True)
    for row, segment, is_token, encoding in rows:
        assert row[is_token].tolist() == encoding.ids
        assert segment[is_token].tolist() == encoding.type_ids


@needs_data
def test_ids_of_tokenizers_on_published_vocabularies(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    lines = [line for line in shared_lines() if line.strip()][::1000]
    for name in ("uncased", "cased", "chinese", "multilingual-cased"):
        folder = tmp_path / name
        folder.mkdir()
        vocabulary = Vocabulary.read(vocabulary_path(name))
        lowercase = name in ("uncased", "chinese")
        tokenizer = WordPieceTokenizer(vocabulary, lowercase=lowercase)
        ours = BertPreprocessor(tokenizer, 64, pad_to_longest=True)
        write_preprocessor(ours, folder)
        theirs = tokenizers.Tokenizer.from_file(str(folder / FAST))
        theirs.enable_truncation(64)
        check_equal(ours(lines), theirs.encode_batch(lines))
        (folder / "vocab.options.json").unlink()
        again = read_preprocessor(folder, 512)
        assert again.tokenizer.vocabulary == ours.tokenizer.vocabulary
        assert again.sequence_length == 64
