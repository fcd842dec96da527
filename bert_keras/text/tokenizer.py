"""`WordPieceTokenizer`: the Keras layer from text to token ids."""

import os
import warnings
from collections.abc import Iterable, Sequence

import keras
import tensorflow as tf

from bert_keras.features import TOKEN_IDS, SpecialTokens
from bert_keras.text import fast_lane
from bert_keras.text.detokenizer import detokenize
from bert_keras.text.inputs import as_text, check_text, codepoints_of
from bert_keras.text.layout import (
    COUNTS,
    OFFSETS,
    SPECIAL_TOKENS_MASK,
    padded_rows,
    ragged_rows,
    special_mask,
)
from bert_keras.text.options import check_integer, tokenizer_options
from bert_keras.text.rules import CODEPOINTS
from bert_keras.text.tables import check_vocabulary, compile_tables
from bert_keras.text.vocabulary import Vocabulary, as_vocabulary
from bert_keras.text.wordpiece import WordPieces, wordpiece

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
        vocabulary: path of a `vocab.txt`, a list of tokens, or a `Vocabulary`. Options
            that are stored with it are used where none are given here; of those that
            decide what a word is, another value is refused.
        lowercase: lower-case the text; on by default.
        strip_accents: remove accents (NFD, then category Mn). Defaults to the value of
            `lowercase`, as in 2018. In scripts whose vowel signs are Mn (Hindi, Thai)
            or whose voicing marks are (Japanese) this loses meaning.
        rules: the rule set: `"huggingface"` (the default), that of the `tokenizers`
            library, or `"google"`, that of tokenization.py in 2018.
        split_on_cjk: make every ideograph a word; on by default.
        normalization: `"NFC"` composes the text first, so that "e" with an accent
            behind it is "é": for cased vocabularies that hold accents.
        never_split: words that are one token however they are written: recognised
            inside text as they stand, case included, but not as a part of a longer
            word. Each must be in the vocabulary.
        special_tokens_in_text: recognise special tokens typed inside the text: True for
            all five, or the names of some. Off by default: untrusted text must not be
            able to insert [SEP]. Recognised as `never_split` words are.
        max_characters_per_word: a longer word becomes one [UNK]. Counted after
            normalisation; defaults to the rule set's own limit (huggingface: 100,
            google: 200).
        split_unknown_characters: a character that the vocabulary lacks becomes one
            [UNK], and the rest of its word is kept. Without it, the rule of 2018, the
            whole word becomes one [UNK].
        id_offset: the id of the vocabulary's first token.
        special_tokens: names of the five special tokens; those stored with a vocabulary
            are known, and others have the names of 2018 without it.
        sequence_length: pad or cut every row to this many tokens; without it, rows are
            padded to the longest.
        ragged: return ragged tensors in place of padded ones.
        offsets: return where in the text each token stands: True or `"characters"`, or
            `"bytes"` of UTF-8.
        special_tokens_mask: return which tokens are [PAD], [CLS], [SEP] or [MASK].
        engine: `"stock"` uses stock ops only; `"tf_text"` gives rows of printable ASCII
            to tensorflow_text, with the same ids, unless an option is not for it
            (offsets, words recognised inside text, `split_unknown_characters`). Without
            it, tensorflow_text is used in tf.data alone, and where it is installed:
            other graphs may be exported, to where there are stock ops only.

    Call arguments:
        inputs: a string tensor of rank 0 or 1, a string or list of strings, or int32
            codepoints `[batch, length]` padded with 0.
        at_most: leave what is past this many tokens of a row out, where there is no
            `sequence_length`; so that one long row does not pad all others to it.

    Returns:
        A dictionary; for a rank 0 input without the batch axis:

        - `token_ids`: int32 `[batch, sequence]`, padded with the id of [PAD];
        - `counts`: int32 `[batch]`, tokens in each row;
        - `offsets`, on request: int32 `[batch, sequence, 2]`, start and end of each
          token in the text; zeros in the padding;
        - `special_tokens_mask`, on request: int32 `[batch, sequence]`, 1 for a special
          token ([UNK] stands for text, and is none).

    Raises:
        ValueError: an option that is not allowed or not the vocabulary's, a vocabulary
            that is malformed (see `Vocabulary`) or was never given, inputs of another
            type.

    Warns:
        UserWarning: lower-casing with a vocabulary that holds capital letters.

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
        lowercase: bool | None = None,
        strip_accents: bool | None = None,
        rules: str | None = None,
        split_on_cjk: bool | None = None,
        normalization: str | None = None,
        never_split: Sequence[str] | None = None,
        special_tokens_in_text: bool | Sequence[str] | None = None,
        max_characters_per_word: int | None = None,
        split_unknown_characters: bool | None = None,
        id_offset: int | None = None,
        special_tokens: SpecialTokens | None = None,
        sequence_length: int | None = None,
        ragged: bool = False,
        offsets: bool | str = False,
        special_tokens_mask: bool = False,
        engine: str | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._given = {
            "rules": rules,
            "lowercase": lowercase,
            "strip_accents": strip_accents,
            "split_on_cjk": split_on_cjk,
            "normalization": normalization,
            "never_split": never_split,
            "special_tokens_in_text": special_tokens_in_text,
            "max_characters_per_word": max_characters_per_word,
            "split_unknown_characters": split_unknown_characters,
            "id_offset": id_offset,
        }
        self._names = special_tokens and SpecialTokens(*special_tokens)
        if sequence_length is not None:
            check_integer("sequence_length", sequence_length, 1)
        self.sequence_length = sequence_length
        self.ragged = ragged
        self.offsets = _unit(offsets)
        self.special_tokens_mask = special_tokens_mask
        fast_lane.check_engine(engine)
        self.engine = engine
        self.built = True
        self._vocabulary = None
        self.options = tokenizer_options(self._given)  # refuses what is not allowed
        if vocabulary is not None:
            self.set_vocabulary(vocabulary)

    def set_vocabulary(
        self, vocabulary: Vocabulary | str | os.PathLike | Iterable[str]
    ) -> None:
        """Sets the vocabulary of a layer that was made without one."""
        vocabulary = as_vocabulary(vocabulary, self._names)
        self.options = tokenizer_options(self._given, vocabulary.options)
        check_vocabulary(vocabulary, self.options)
        self._vocabulary = vocabulary.with_options(self.options)
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
        """The vocabulary, with the options of this layer."""
        if self._vocabulary is None:
            raise ValueError(_NO_VOCABULARY.format(self.name))
        return self._vocabulary

    @property
    def has_vocabulary(self) -> bool:
        """False between making a layer from its config and loading its assets."""
        return self._vocabulary is not None

    @property
    def special_ids(self) -> SpecialTokens:
        """The ids of the special tokens, `id_offset` included."""
        ids = self.vocabulary.special_ids
        return SpecialTokens(*(number + self.options.id_offset for number in ids))

    @property
    def ids_end(self) -> int:
        """One more than the greatest id: the least number of rows of a token table."""
        return len(self.vocabulary) + self.options.id_offset

    def __call__(self, inputs, **kwargs):
        # Keras would take a list of strings for a list of tensors.
        return super().__call__(as_text(inputs), **kwargs)

    def call(self, inputs, at_most: int | None = None):
        check_text(inputs)
        if at_most is not None:
            check_integer("at_most", at_most, 0)
        if inputs.dtype != tf.string:
            # Whatever is no codepoint stays none: a cast alone would cut numbers off.
            inputs = tf.cast(tf.clip_by_value(inputs, -1, CODEPOINTS), tf.int32)
        if not self.has_vocabulary:
            raise ValueError(_NO_VOCABULARY.format(self.name))
        is_scalar = inputs.shape.rank == 0
        texts = inputs[None] if is_scalar else inputs
        pieces_of = self._compiled if tf.executing_eagerly() else self._pieces
        pieces, row_starts = pieces_of(texts)
        row_starts = row_starts if self.offsets else None
        if self.ragged:
            length = at_most if self.sequence_length is None else self.sequence_length
            outputs = ragged_rows(pieces, row_starts, length)
        else:
            pad_id, length = self.special_ids.pad, self.sequence_length
            outputs = padded_rows(pieces, row_starts, pad_id, length, at_most)
        if self.special_tokens_mask:
            ids = outputs[TOKEN_IDS]
            outputs[SPECIAL_TOKENS_MASK] = special_mask(ids, self.special_ids)
        if is_scalar:
            outputs = {name: value[0] for name, value in outputs.items()}
        return outputs

    def _takes_fast_lane(self, texts: tf.Tensor) -> bool:
        if self.engine == "stock" or texts.dtype != tf.string or self.offsets:
            return False
        is_asked = self.engine == "tf_text" or (
            fast_lane.in_tf_data() and fast_lane.is_installed()
        )
        return is_asked and fast_lane.can_take(self.vocabulary)

    def _pieces(self, texts: tf.Tensor) -> tuple[WordPieces, tf.Tensor]:
        """Returns the pieces, their places in the unit asked for, and of row starts."""
        if self._takes_fast_lane(texts):
            ids, row_splits = fast_lane.fast_pieces(texts, self.vocabulary)
            ids += self.options.id_offset
            return WordPieces(ids, row_splits, starts=None, ends=None), None
        tables = compile_tables(self.vocabulary)
        text = codepoints_of(texts, in_bytes=self.offsets == "bytes")
        pieces = wordpiece(text.codepoints, text.row_splits, tables)
        row_starts = text.row_splits[:-1]
        if text.positions is not None:
            places = (pieces.starts, pieces.ends, row_starts)
            starts, ends, row_starts = (tf.gather(text.positions, p) for p in places)
            pieces = pieces._replace(starts=starts, ends=ends)
        ids = pieces.ids + self.options.id_offset
        return pieces._replace(ids=ids), row_starts

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
        rows -= tf.cast(self.options.id_offset, rows.dtype)
        texts = detokenize(rows, self.vocabulary, skip_special_tokens)
        return texts[0] if ids.shape.rank == 1 else texts

    def compute_output_spec(self, inputs, at_most=None):
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
        if self.special_tokens_mask:
            shapes[SPECIAL_TOKENS_MASK] = sequence
        return {
            name: keras.KerasTensor(shape, dtype="int32", name=name)
            for name, shape in shapes.items()
        }

    def compute_output_shape(self, input_shape):
        dtype = "int32" if len(input_shape) > 1 else "string"
        symbolic = keras.KerasTensor(input_shape, dtype=dtype)
        specs = self.compute_output_spec(symbolic)
        return {name: spec.shape for name, spec in specs.items()}

    def copy(self, **changes) -> "WordPieceTokenizer":
        """Returns a tokenizer with the same tokens and some options changed."""
        bare = self.vocabulary.with_options(None)
        with warnings.catch_warnings():  # of capitals: this one has warned
            warnings.simplefilter("ignore")
            return WordPieceTokenizer(bare, **{**self.settings(), **changes})

    def settings(self) -> dict:
        """Returns every option of the tokenizer by its name, as JSON values.

        Without a vocabulary, those that were given: the others will be as stored.
        """
        options, names = self._given, self._names
        if self.has_vocabulary:
            options, names = self.options.as_json(), self.vocabulary.special_tokens
        return {
            **options,
            "special_tokens": names and list(names),
            "sequence_length": self.sequence_length,
            "ragged": self.ragged,
            "offsets": self.offsets,
            "special_tokens_mask": self.special_tokens_mask,
            "engine": self.engine,
        }

    def get_config(self):
        return {**super().get_config(), **self.settings()}

    def save_assets(self, dir_path):
        """Writes the vocabulary; Keras calls this when it saves a model."""
        self.vocabulary.write(os.path.join(dir_path, VOCABULARY_FILE))

    def load_assets(self, dir_path):
        """Reads the vocabulary; Keras calls this when it loads a model."""
        self.set_vocabulary(os.path.join(dir_path, VOCABULARY_FILE))


def _unit(offsets: bool | str) -> bool | str:
    if offsets not in (False, True, "characters", "bytes"):
        raise ValueError(
            f"Received: offsets={offsets!r}; allowed: False, True, 'characters', "
            "'bytes'."
        )
    return "characters" if offsets is True else offsets
