"""`WordPieceTokenizer`: the Keras layer from text to token ids."""

import os
from collections.abc import Iterable, Sequence

import keras
import tensorflow as tf

from bert_keras.features import TOKEN_IDS, SpecialTokens
from bert_keras.text.detokenizer import detokenize
from bert_keras.text.inputs import as_text, check_text, codepoints_of
from bert_keras.text.rules import WORD_LIMITS, normalization
from bert_keras.text.tables import compile_tables
from bert_keras.text.vocabulary import Vocabulary, as_vocabulary
from bert_keras.text.wordpiece import WordPieces, wordpiece

COUNTS = "counts"
OFFSETS = "offsets"
VOCABULARY_FILE = "vocab.txt"
_NO_VOCABULARY = (
    "The tokenizer {!r} has no vocabulary. Received: vocabulary=None; give one to the "
    "constructor or to set_vocabulary()."
)


@keras.saving.register_keras_serializable(package="bert_keras")
class WordPieceTokenizer(keras.layers.Layer):
    """Cuts text into word pieces and returns their ids.

    The ids equal those of Hugging Face `tokenizers` (BertNormalizer, BertPreTokenizer,
    WordPiece). The layer uses stock TensorFlow ops only; it works eagerly, in
    `tf.function`, in `tf.data` (batched or not), in a functional model over
    `keras.Input((), dtype="string")`, and in exported models.

    Args:
        vocabulary: path of a `vocab.txt`, a list of tokens, or a `Vocabulary`.
        lowercase: lower-case the text.
        strip_accents: remove accents (NFD, then category Mn). Defaults to the value of
            `lowercase`, as in 2018.
        rules: the rule set; `"huggingface"`.
        special_tokens_in_text: recognise special tokens typed inside the text: True for
            all five, or the names of some. Off by default: untrusted text must not be
            able to insert [SEP]. Recognised as they are written, case included.
        max_characters_per_word: a longer word becomes one [UNK]. Counted after
            normalisation; defaults to the rule set's own limit (huggingface: 100).
        special_tokens: names of the five special tokens; those of a `Vocabulary` are
            known, and other vocabularies have the names of 2018 without it.
        sequence_length: pad or cut every row to this many tokens; without it, rows are
            padded to the longest.
        ragged: return ragged tensors in place of padded ones.
        offsets: return where in the text each token stands.

    Call arguments:
        inputs: a string tensor of rank 0 or 1, a string or list of strings, or int32
            codepoints `[batch, length]` padded with 0.

    Returns:
        A dictionary; for a rank 0 input without the batch axis:

        - `token_ids`: int32 `[batch, sequence]`, padded with the id of [PAD];
        - `counts`: int32 `[batch]`, tokens in each row;
        - `offsets`, on request: int32 `[batch, sequence, 2]`, start and end of each
          token in characters of the text; zeros in the padding.

    Raises:
        ValueError: an unknown rule set, a wrong length or limit, a vocabulary that is
            malformed (see `Vocabulary`) or was never given, inputs of another type.

    Source of the rules: google-research/bert, tokenization.py (2018), as `tokenizers`
    states it today.

    >>> tokenizer = WordPieceTokenizer("vocab.txt")  # bert-base-uncased
    >>> tokenizer("Welcome to HuggingFace Forums!")["token_ids"]
    [6160, 2000, 17662, 12172, 21415, 999]
    """

    def __init__(
        self,
        vocabulary: Vocabulary | str | os.PathLike | Iterable[str] | None = None,
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        rules: str = "huggingface",
        special_tokens_in_text: bool | Sequence[str] = False,
        max_characters_per_word: int | None = None,
        special_tokens: SpecialTokens | None = None,
        sequence_length: int | None = None,
        ragged: bool = False,
        offsets: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        if special_tokens is None:
            is_known = isinstance(vocabulary, Vocabulary)
            special_tokens = vocabulary.special_tokens if is_known else SpecialTokens()
        self._special_tokens = SpecialTokens(*special_tokens)
        self.rules = rules
        if not isinstance(special_tokens_in_text, bool):
            special_tokens_in_text = list(special_tokens_in_text)
        self.special_tokens_in_text = special_tokens_in_text
        self._names_in_text()  # refuses unknown names
        normalization(rules, lowercase, self.strip_accents)  # refuses unknown rules
        if max_characters_per_word is None:
            max_characters_per_word = WORD_LIMITS[rules]
        self.max_characters_per_word = _positive(
            max_characters_per_word, "max_characters_per_word"
        )
        if sequence_length is not None:
            _positive(sequence_length, "sequence_length")
        self.sequence_length = sequence_length
        self.ragged = ragged
        self.offsets = offsets
        self.built = True
        self._vocabulary = None
        if vocabulary is not None:
            self.set_vocabulary(vocabulary)

    def set_vocabulary(
        self, vocabulary: Vocabulary | str | os.PathLike | Iterable[str]
    ) -> None:
        """Sets the vocabulary of a layer that was made without one."""
        names = SpecialTokens(*self._special_tokens)
        vocabulary = as_vocabulary(vocabulary, names)
        if vocabulary.special_tokens != names:
            raise ValueError(
                "The vocabulary has other special tokens. Received: "
                f"{', '.join(vocabulary.special_tokens)}; allowed: {', '.join(names)}."
            )
        self._vocabulary = vocabulary
        # Compiled once for eager calls, so that they neither retrace nor copy constants
        # of a megabyte. In closures, which Keras does not track and export.
        by_type = {
            spec.dtype: tf.function(
                self._pieces, input_signature=[spec], autograph=False
            )
            for spec in (
                tf.TensorSpec([None], tf.string),
                tf.TensorSpec([None, None], tf.int32),
            )
        }
        self._compiled = lambda texts: by_type[texts.dtype](texts)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
        if self._vocabulary is None:
            raise ValueError(_NO_VOCABULARY.format(self.name))
        return self._vocabulary

    @property
    def has_vocabulary(self) -> bool:
        """False between making a layer from its config and loading its assets."""
        return self._vocabulary is not None

    def __call__(self, inputs, **kwargs):
        # Keras would take a list of strings for a list of tensors.
        return super().__call__(as_text(inputs), **kwargs)

    def call(self, inputs):
        check_text(inputs)
        if inputs.dtype != tf.string:
            inputs = tf.cast(inputs, tf.int32)
        if not self.has_vocabulary:
            raise ValueError(_NO_VOCABULARY.format(self.name))
        is_scalar = inputs.shape.rank == 0
        texts = inputs[None] if is_scalar else inputs
        pieces_of = self._compiled if tf.executing_eagerly() else self._pieces
        pieces, row_starts = pieces_of(texts)
        arrange = self._as_ragged if self.ragged else self._as_dense
        outputs = arrange(pieces, row_starts)
        if is_scalar:
            outputs = {name: value[0] for name, value in outputs.items()}
        return outputs

    def _names_in_text(self) -> tuple[str, ...]:
        names = self.special_tokens_in_text
        if isinstance(names, bool):
            return tuple(self._special_tokens) if names else ()
        unknown = [name for name in names if name not in self._special_tokens]
        if unknown:
            raise ValueError(
                f"Received: special_tokens_in_text={list(names)}; allowed: a bool, or "
                f"some of {', '.join(self._special_tokens)}."
            )
        return tuple(names)

    def _pieces(self, texts: tf.Tensor) -> tuple[WordPieces, tf.Tensor]:
        """Returns the pieces, and where each row starts among the codepoints."""
        tables = compile_tables(
            self.vocabulary,
            rules=self.rules,
            lowercase=self.lowercase,
            strip_accents=self.strip_accents,
            word_limit=self.max_characters_per_word,
            special_tokens_in_text=self._names_in_text(),
        )
        codepoints, row_splits = codepoints_of(texts)
        return wordpiece(codepoints, row_splits, tables), row_splits[:-1]

    def _as_dense(self, pieces: WordPieces, row_starts: tf.Tensor) -> dict:
        firsts = pieces.row_splits[:-1]
        counts = pieces.row_splits[1:] - firsts
        length = self.sequence_length
        if length is None:
            length = tf.reduce_max(tf.concat([counts, [0]], axis=0))
        column = tf.range(length)[None, :]
        is_token = column < counts[:, None]
        # Padding reads a value past the last token, which is always there.
        index = tf.where(is_token, firsts[:, None] + column, tf.size(pieces.ids))

        def spread(values, padding):
            return tf.gather(tf.concat([values, [padding]], axis=0), index)

        outputs = {
            TOKEN_IDS: spread(pieces.ids, self.vocabulary.special_ids.pad),
            COUNTS: tf.minimum(counts, length),
        }
        if self.offsets:
            edges = tf.stack(
                [spread(pieces.starts, 0), spread(pieces.ends, 0)], axis=-1
            )
            edges -= row_starts[:, None, None]
            outputs[OFFSETS] = tf.where(is_token[..., None], edges, 0)
        return outputs

    def _as_ragged(self, pieces: WordPieces, row_starts: tf.Tensor) -> dict:
        def rows(values):
            ragged = tf.RaggedTensor.from_row_splits(values, pieces.row_splits)
            return ragged[:, : self.sequence_length]

        ids = rows(pieces.ids)
        outputs = {TOKEN_IDS: ids, COUNTS: tf.cast(ids.row_lengths(), tf.int32)}
        if self.offsets:
            counts = pieces.row_splits[1:] - pieces.row_splits[:-1]
            edges = tf.stack([pieces.starts, pieces.ends], axis=-1)
            outputs[OFFSETS] = rows(edges - tf.repeat(row_starts, counts)[:, None])
        return outputs

    def detokenize(self, ids, skip_special_tokens: bool = True) -> tf.Tensor:
        """Returns text for ids: pieces joined, no spaces between ideographs.

        Args:
            ids: integers `[sequence]` or `[batch, sequence]`, dense or ragged.
            skip_special_tokens: leave [CLS], [SEP], [PAD], [MASK] and [UNK] out.

        Returns:
            a string, or strings `[batch]`.
        """
        ids = ids if isinstance(ids, tf.RaggedTensor) else tf.convert_to_tensor(ids)
        rows = ids[None] if ids.shape.rank == 1 else ids
        texts = detokenize(rows, self.vocabulary, skip_special_tokens)
        return texts[0] if ids.shape.rank == 1 else texts

    def compute_output_spec(self, inputs):
        check_text(inputs)
        if self.ragged:
            raise ValueError(
                "A functional model needs padded ids. Received: ragged=True; allowed: "
                "ragged=False."
            )
        batch = tuple(inputs.shape[:1])
        sequence = (*batch, self.sequence_length)
        shapes = {TOKEN_IDS: sequence, COUNTS: batch}
        if self.offsets:
            shapes[OFFSETS] = (*sequence, 2)
        return {
            name: keras.KerasTensor(shape, dtype="int32", name=name)
            for name, shape in shapes.items()
        }

    def compute_output_shape(self, input_shape):
        symbolic = keras.KerasTensor(input_shape, dtype="string")
        specs = self.compute_output_spec(symbolic)
        return {name: spec.shape for name, spec in specs.items()}

    def options(self) -> dict:
        """Returns the tokenizer's own options, as JSON values: all that decides ids."""
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "rules": self.rules,
            "special_tokens_in_text": (
                self.special_tokens_in_text
                if isinstance(self.special_tokens_in_text, bool)
                else list(self.special_tokens_in_text)
            ),
            "max_characters_per_word": self.max_characters_per_word,
            "special_tokens": list(self._special_tokens),
            "sequence_length": self.sequence_length,
            "ragged": self.ragged,
            "offsets": self.offsets,
        }

    def get_config(self):
        return {**super().get_config(), **self.options()}

    def save_assets(self, dir_path):
        """Writes the vocabulary; Keras calls this when it saves a model."""
        self.vocabulary.write(os.path.join(dir_path, VOCABULARY_FILE))

    def load_assets(self, dir_path):
        """Reads the vocabulary; Keras calls this when it loads a model."""
        self.set_vocabulary(os.path.join(dir_path, VOCABULARY_FILE))


def _positive(value: int, name: str) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(
            f"{name} is not allowed. Received: {name}={value!r}; allowed: an integer "
            "of at least 1."
        )
    return value
