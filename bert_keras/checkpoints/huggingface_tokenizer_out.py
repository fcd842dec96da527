"""A preprocessor -> the tokenizer's files of a Hugging Face folder."""

from pathlib import Path

from bert_keras.checkpoints.huggingface_tokenizer import TOKENIZER, TOKENIZER_CONFIG
from bert_keras.files import write_json
from bert_keras.text.options import TokenizerOptions
from bert_keras.text.tokenizer import VOCABULARY_FILE, WordPieceTokenizer
from bert_keras.text.vocabulary import Vocabulary
from bert_keras.tokens.preprocessor import BertPreprocessor

_ONLY = (
    ("rules", "huggingface"),
    ("split_unknown_characters", False),
    ("id_offset", 0),
)
"""Options of which Hugging Face has one value."""

_USUAL_LIMIT = 100


def write_preprocessor(preprocessor: BertPreprocessor, folder: Path) -> None:
    """Writes `vocab.txt`, `tokenizer.json` and `tokenizer_config.json`.

    The library `tokenizers` recognises special tokens typed in a text whatever it is
    told; `transformers` does so only if the tokenizer here recognises any.

    Raises:
        ValueError: naming an option that Hugging Face does not have.
    """
    tokenizer = preprocessor.tokenizer
    check_expressible(tokenizer)
    tokenizer.vocabulary.write(folder / VOCABULARY_FILE)
    fast = _fast_tokenizer(tokenizer.vocabulary, tokenizer.options)
    write_json(fast, folder / TOKENIZER, indent=None)
    write_json(_config(preprocessor), folder / TOKENIZER_CONFIG)


def check_expressible(tokenizer: WordPieceTokenizer) -> None:
    """Refuses a tokenizer that gives ids which Hugging Face cannot give."""
    for option, allowed in _ONLY:
        value = getattr(tokenizer.options, option)
        if value != allowed:
            raise ValueError(
                f"Hugging Face cannot do what the tokenizer does. Received: {option}="
                f"{value!r}; allowed: {option}={allowed!r}."
            )


def _config(preprocessor: BertPreprocessor) -> dict:
    options = preprocessor.tokenizer.options
    names = preprocessor.tokenizer.vocabulary.special_tokens
    # "BertTokenizer" makes its parts anew, of these options and no others.
    is_plain = options.normalization is None and not options.never_split
    is_plain &= options.max_characters_per_word == _USUAL_LIMIT
    return {
        "tokenizer_class": "BertTokenizer" if is_plain else "PreTrainedTokenizerFast",
        "do_lower_case": options.lowercase,
        "strip_accents": options.strip_accents,
        "tokenize_chinese_chars": options.split_on_cjk,
        "model_max_length": preprocessor.sequence_length,
        "split_special_tokens": options.special_tokens_in_text in (False, ()),
        "clean_up_tokenization_spaces": True,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in names._asdict().items()},
    }


def _fast_tokenizer(vocabulary: Vocabulary, options: TokenizerOptions) -> dict:
    """Returns what the library `tokenizers` reads."""
    names = vocabulary.special_tokens
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": options.split_on_cjk,
        "strip_accents": options.strip_accents,
        "lowercase": options.lowercase,
    }
    if options.normalization is not None:
        steps = [{"type": options.normalization}, normalizer]
        normalizer = {"type": "Sequence", "normalizers": steps}
    added = [_added_token(vocabulary, token, is_special=True) for token in names]
    added += [
        _added_token(vocabulary, token, is_special=False)
        for token in options.never_split
        if token not in names
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _template(vocabulary),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": names.unk,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": options.max_characters_per_word,
            "vocab": {t: number for number, t in enumerate(vocabulary) if t},
        },
    }


def _added_token(vocabulary: Vocabulary, token: str, is_special: bool) -> dict:
    # They look at both sides of a word; ours does only where its own end is a letter.
    is_word = token[0].isalnum() and token[-1].isalnum()
    return {
        "id": vocabulary.id(token),
        "content": token,
        "single_word": is_word and not is_special,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": is_special,
    }


def _template(vocabulary: Vocabulary) -> dict:
    """Returns [CLS] A [SEP] and [CLS] A [SEP] B [SEP], with segments 0 and 1."""
    names = vocabulary.special_tokens

    def special(token: str, segment: int) -> dict:
        return {"SpecialToken": {"id": token, "type_id": segment}}

    def sequence(name: str, segment: int) -> dict:
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [special(names.cls, 0), sequence("A", 0), special(names.sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, sequence("B", 1), special(names.sep, 1)],
        "special_tokens": {
            token: {"id": token, "ids": [vocabulary.id(token)], "tokens": [token]}
            for token in (names.cls, names.sep)
        },
    }
