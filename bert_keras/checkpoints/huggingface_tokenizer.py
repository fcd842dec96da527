"""The tokenizer's files of a Hugging Face folder -> a preprocessor.

An option is taken from the first of `tokenizer_config.json` and `tokenizer.json` that
has it, as Hugging Face does. Where neither says whether the text is lower-cased, the
vocabulary does: cased models were published without a word on it.
"""

from pathlib import Path
from typing import NamedTuple

from bert_keras.checkpoints.huggingface_config import refuse
from bert_keras.checkpoints.vocabularies import looks_lowercase, tokens_by_id
from bert_keras.features import SpecialTokens
from bert_keras.files import read_json
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary, options_path
from bert_keras.tokens.preprocessor import BertPreprocessor

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
ADDED_TOKENS = "added_tokens.json"
SENTENCE_CONFIG = "sentence_bert_config.json"

_ABSURD = 1 << 20  # 1e30 stands for "no limit"


class _Files(NamedTuple):
    """What the files say; an empty dictionary stands for one that is not there."""

    folder: Path
    config: dict
    fast: dict
    sentence: dict
    added: dict

    @classmethod
    def read(cls, folder: Path) -> "_Files":
        names = (TOKENIZER_CONFIG, TOKENIZER, SENTENCE_CONFIG, ADDED_TOKENS)
        found = [read_json(folder / n) if (folder / n).exists() else {} for n in names]
        for name, fields in zip(names, found, strict=True):
            if not isinstance(fields, dict):
                raise ValueError(f"{folder / name} does not hold the fields of a file.")
        return cls(folder, *found)

    @property
    def normalizers(self) -> list:
        """The normalizers of `tokenizer.json`, one behind the other."""
        normalizer = self.fast.get("normalizer") or {}
        return normalizer.get("normalizers") or [normalizer]

    @property
    def added_ids(self) -> dict[str, int]:
        """The tokens that were added, recognised inside text, by their ids."""
        tokens = self.fast.get("added_tokens") or []
        return self.added | {token["content"]: token["id"] for token in tokens}


def read_preprocessor(
    folder: Path, max_sequence_length: int, names_in_text: tuple[str, ...] = ()
) -> BertPreprocessor | None:
    """Reads the tokenizer's files; None where there are none.

    Special tokens that are typed in a text are plain text here. With Hugging Face they
    are not, and anyone who writes the text can put them there.

    Args:
        folder: of the checkpoint.
        max_sequence_length: rows of the position table.
        names_in_text: fields of `SpecialTokens` that are recognised inside text all the
            same, such as `"mask"`.

    Raises:
        ValueError: naming the file and the field: a tokenizer of another kind.
    """
    files = _Files.read(folder)
    if files.fast:
        _check_kind(files.fast, files.normalizers, folder / TOKENIZER)
    names = _special_tokens(files.config)
    vocabulary = _vocabulary(files, names)
    if vocabulary is None:
        return None
    if vocabulary.options is not None:  # this package wrote it
        tokenizer = WordPieceTokenizer(vocabulary)
    else:
        in_text = [getattr(names, name) for name in names_in_text]
        tokenizer = WordPieceTokenizer(
            vocabulary,
            **_options(files, vocabulary),
            never_split=[token for token in files.added_ids if token not in names],
            special_tokens_in_text=in_text or False,
        )
    length = min(max_sequence_length, *_lengths(files))
    return BertPreprocessor(tokenizer, length, pad_to_longest=True)


def _check_kind(fast: dict, normalizers: list, path: Path) -> None:
    """Refuses a `tokenizer.json` that is not BERT's."""
    model = fast.get("model") or {}
    fields = [("model", kind_of(model), "WordPiece")]
    fields += [
        ("pre_tokenizer", kind_of(fast.get("pre_tokenizer")), "BertPreTokenizer")
    ]
    fields += [("normalizer", kind_of(step), "NFC") for step in normalizers[:-1]]
    fields += [("normalizer", kind_of(normalizers[-1]), "BertNormalizer")]
    prefix = "continuing_subword_prefix"
    fields += [(prefix, model.get(prefix, "##"), "##")]
    fields += [("clean_text", normalizers[-1].get("clean_text", True), True)]
    for field, value, allowed in fields:
        if value != allowed:
            refuse(path, field, value, repr(allowed))


def kind_of(part) -> str | None:
    """Returns the type of a part of `tokenizer.json`, if it is one."""
    return part.get("type") if isinstance(part, dict) else None


def _special_tokens(config: dict) -> SpecialTokens:
    names = {}
    for field, usual in SpecialTokens()._asdict().items():
        token = config.get(f"{field}_token") or usual
        names[field] = token["content"] if isinstance(token, dict) else token
    return SpecialTokens(**names)


def _vocabulary(files: _Files, names: SpecialTokens) -> Vocabulary | None:
    """Returns the tokens and those that were added; a later line wins, as there."""
    path = files.folder / VOCABULARY_FILE
    if path.exists() and options_path(path).exists():
        return Vocabulary.read(path, names)
    ids = files.fast.get("model", {}).get("vocab")
    if ids:
        path = files.folder / TOKENIZER
    elif path.exists():
        lines = Vocabulary.read(path, names, duplicates="last")
        ids = {token: number for number, token in enumerate(lines) if token}
    else:
        return None
    return Vocabulary(tokens_by_id(ids | files.added_ids, path), names, str(path))


def _options(files: _Files, vocabulary: Vocabulary) -> dict:
    normalizer = files.normalizers[-1]

    def first(field: str, there: str, otherwise: bool) -> bool:
        values = (files.config.get(field), normalizer.get(there), otherwise)
        return next(value for value in values if value is not None)

    lowercase = first("do_lower_case", "lowercase", looks_lowercase(vocabulary))
    lowercase = lowercase or bool(files.sentence.get("do_lower_case"))
    return {
        "rules": "huggingface",
        "lowercase": lowercase,
        "strip_accents": first("strip_accents", "strip_accents", lowercase),
        "split_on_cjk": first("tokenize_chinese_chars", "handle_chinese_chars", True),
        "normalization": "NFC" if len(files.normalizers) > 1 else None,
        "max_characters_per_word": files.fast.get("model", {}).get(
            "max_input_chars_per_word"
        ),
    }


def _lengths(files: _Files) -> list[int]:
    """Returns the greatest lengths that the files know of.

    What `tokenizer.json` says of truncation is how it was last called; it counts only
    where nothing else is known.
    """
    truncation = files.fast.get("truncation") or {}
    known = [files.config.get("model_max_length"), files.sentence.get("max_seq_length")]
    known = [n for n in known if isinstance(n, int | float) and n < _ABSURD]
    if not known and isinstance(truncation.get("max_length"), int):
        known = [truncation["max_length"]]
    return [int(length) for length in known] or [_ABSURD]
