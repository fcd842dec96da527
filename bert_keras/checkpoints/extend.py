"""More tokens, or longer texts, for a model that is trained already."""

import warnings
from collections.abc import Sequence

import keras
import numpy as np

from bert_keras.embeddings import initial_weights
from bert_keras.encoder.backbone import BertBackbone
from bert_keras.features import TOKEN_IDS
from bert_keras.text.options import check_integer
from bert_keras.text.tokenizer import WordPieceTokenizer
from bert_keras.text.vocabulary import split_token
from bert_keras.tokens.preprocessor import BertPreprocessor

NEW_ROWS = ("initializer", "mean")
POSITIONS = ("repeat", "interpolate")

_TOKEN_TABLES = (
    "embeddings/token_embedding/embeddings",
    "masked_lm/output_table/embeddings",
)
_BIAS = "masked_lm/bias"
_POSITION_TABLE = "embeddings/position_embeddings"


def extend_model(
    model: keras.Model,
    tokens: Sequence[str] = (),
    *,
    new_rows: str = "initializer",
    max_sequence_length: int | None = None,
    positions: str = "repeat",
    seed: int = 0,
) -> keras.Model:
    """Returns a new model that knows more tokens or reads longer texts.

    What it knew stays, bit for bit: the rows of the tokens that were there, and with
    `"repeat"` those of the positions. A tied output table is still the token table. Of
    training (optimizer, compilation) nothing is kept.

    Args:
        model: a `BertPretrainer` or a task model.
        tokens: new tokens, which get the next ids. One that the tokenizer would change
            or cut up, such as `"[E1]"`, is recognised in a text as it is written.
        new_rows: of new tokens: drawn as in a new model, or the mean of the old rows.
        max_sequence_length: rows of the position table, not fewer than now. The
            preprocessor cuts there if it cut at the end of the table before.
        positions: new ones are the old ones once more, or the whole table is stretched.
        seed: of what is drawn.

    Raises:
        ValueError: tokens that are there already, or of a model that has no vocabulary,
            a table that would shrink, or an unknown choice.
    """
    _check_choice("new_rows", new_rows, NEW_ROWS)
    _check_choice("positions", positions, POSITIONS)
    old = model.backbone
    length = max_sequence_length or old.max_sequence_length
    check_integer("max_sequence_length", length, old.max_sequence_length)
    preprocessor, known = model.preprocessor, old.vocabulary_size
    if tokens and preprocessor is None:
        raise ValueError(
            "Tokens are added to a vocabulary. Received: a model with preprocessor="
            "None; allowed: one that carries its preprocessor."
        )
    if preprocessor is not None:
        known = preprocessor.tokenizer.ids_end  # rows behind it are no token's yet
        preprocessor = _extended(preprocessor, list(tokens), old, length)
    rows = max(old.vocabulary_size, known + len(tokens))
    backbone = BertBackbone.from_config(
        {**old.get_config(), "vocabulary_size": rows, "max_sequence_length": length}
    )
    parts = {"backbone": backbone, "preprocessor": preprocessor}
    extended = type(model)(**{**model.get_config(), **parts})
    variables = {variable.path: variable for variable in extended.weights}
    for source in model.weights:
        values = np.array(source.numpy())
        if source.path in (*_TOKEN_TABLES, _BIAS) and tokens:
            made = _new_rows(values[:known], len(tokens), new_rows, old, seed)
            values = [values[:known], made, values[known + len(tokens) :]]
            values, seed = np.concatenate(values), seed + 1
        elif source.path == _POSITION_TABLE:
            values = _more_positions(values, length, positions)
        variables[source.path].assign(values)
    return extended


def _extended(
    preprocessor: BertPreprocessor, tokens: list[str], old: BertBackbone, length: int
) -> BertPreprocessor:
    tokenizer = preprocessor.tokenizer
    if tokens:
        tokenizer = _with_tokens(tokenizer, tokens)
    cut = preprocessor.sequence_length
    return BertPreprocessor(
        tokenizer,
        length if cut == old.max_sequence_length else cut,
        pad_to_longest=preprocessor.pad_to_longest,
    )


def _with_tokens(
    tokenizer: WordPieceTokenizer, tokens: list[str]
) -> WordPieceTokenizer:
    vocabulary = tokenizer.vocabulary.extend(tokens).with_options(None)
    settings, options = tokenizer.settings(), tokenizer.options
    names = vocabulary.special_tokens
    with warnings.catch_warnings():  # of capitals: the tokenizer has warned
        warnings.simplefilter("ignore")
        plain = WordPieceTokenizer(
            vocabulary, **options.as_json(), special_tokens=names, ragged=True
        )
        words = [token for token in tokens if not split_token(token)[0]]
        found = plain(words)[TOKEN_IDS].to_list() if words else []
        cut_up = [
            word
            for word, ids in zip(words, found, strict=True)
            if ids != [vocabulary.id(word) + options.id_offset]
        ]
        settings["never_split"] = [*settings["never_split"], *cut_up]
        return WordPieceTokenizer(vocabulary, **settings)


def _new_rows(
    old_rows: np.ndarray, count: int, how: str, backbone: BertBackbone, seed: int
) -> np.ndarray:
    """Returns rows for new tokens, or of the bias of the scores new numbers."""
    shape = (count, *old_rows.shape[1:])
    if how == "mean":
        mean = old_rows.mean(axis=0, dtype=np.float64).astype(old_rows.dtype)
        return np.broadcast_to(mean, shape)
    if old_rows.ndim == 1:
        return np.zeros(shape, old_rows.dtype)
    config = initial_weights(backbone.initializer_range).get_config()
    draw = keras.initializers.TruncatedNormal(**{**config, "seed": seed})
    return np.array(draw(shape, dtype="float32")).astype(old_rows.dtype)


def _more_positions(rows: np.ndarray, length: int, how: str) -> np.ndarray:
    """Returns a position table of that length."""
    if how == "repeat":
        return rows[np.arange(length) % len(rows)]
    places = np.linspace(0, len(rows) - 1, length)
    known = np.arange(len(rows))
    columns = [np.interp(places, known, column) for column in rows.T]
    return np.stack(columns, axis=1).astype(rows.dtype)


def _check_choice(name: str, value, allowed: tuple) -> None:
    if value not in allowed:
        raise ValueError(
            f"{name} is not allowed. Received: {name}={value!r}; allowed: "
            f"{', '.join(map(repr, allowed))}."
        )
