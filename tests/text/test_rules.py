"""The stored table is what the reference library does today."""

import importlib.util
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from bert_keras.text.rules import (
    CODEPOINTS,
    DROP,
    IDEOGRAPH,
    PUNCTUATION,
    SPACE,
    WORD,
    load_rules,
    normalization,
    translation,
)

MAKER = Path(__file__).parents[2] / "tools" / "make_rules.py"


@pytest.fixture(scope="module")
def maker():
    pytest.importorskip("tokenizers")
    spec = importlib.util.spec_from_file_location("make_rules", MAKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_stored(name, made):
    stored = load_rules(name)
    assert set(made) == set(stored)
    for key in set(made) - {"origin"}:
        np.testing.assert_array_equal(stored[key], made[key], err_msg=key)


def test_the_file_is_what_its_script_makes(maker):
    assert_stored("huggingface", maker.huggingface())


def test_the_file_of_2018_is_what_its_script_makes(maker):
    stored = str(load_rules("google")["origin"]).rsplit(" ", 1)[1]
    if unicodedata.unidata_version != stored:
        pytest.skip(f"made with Unicode {stored}, not {unicodedata.unidata_version}")
    assert_stored("google", maker.google())


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
def test_every_switch_is_the_library_s(maker, lowercase, strip_accents, random):
    table = translation(normalization("huggingface", lowercase, strip_accents))
    changed = [c for c in table if c < 0x3400 or 0xAC00 <= c < 0xD7A4]
    sample = {*changed[::7], *random.integers(0, 0xD800, 2000).tolist()}
    for codepoint in sorted(sample):
        ours = ("x" + chr(codepoint) + "y").translate(table).split(" ")
        theirs = maker.words(
            codepoint, lowercase=lowercase, strip_accents=strip_accents
        )
        assert [word for word in ours if word] == theirs, hex(codepoint)


@pytest.mark.parametrize(
    ("character", "kind"),
    [
        ("a", WORD),
        ("\t", SPACE),
        ("\u00a0", SPACE),
        ("\u3000", SPACE),
        ("\u200b", DROP),
        ("\0", DROP),
        ("\ufffd", DROP),
        ("$", PUNCTUATION),
        ("中", IDEOGRAPH),
        ("\u0301", DROP),
        ("≠", PUNCTUATION),  # NFD makes it "=" and an accent
    ],
)
def test_kinds(character, kind):
    assert normalization("huggingface", True, True).kinds[ord(character)] == kind


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "expected"),
    [
        (True, True, "e"),
        (True, False, "é"),
        (False, True, "E"),
        (False, False, "É"),
    ],
)
def test_lower_case_and_accents_are_separate(lowercase, strip_accents, expected):
    table = translation(normalization("huggingface", lowercase, strip_accents))
    assert "É".translate(table) == expected


def test_a_syllable_becomes_three_jamo():
    outputs = normalization("huggingface", True, True).outputs[ord("안")]
    assert outputs.tolist() == [0x110B, 0x1161, 0x11AB]  # Unicode 3.12, by hand


def test_the_table_covers_all_codepoints():
    table = normalization("huggingface", False, False)
    assert table.kinds.shape == (CODEPOINTS,)
    assert not table.kinds.flags.writeable
