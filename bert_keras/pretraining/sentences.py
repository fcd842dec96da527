"""Where a sentence ends: a simple rule, stated.

A sentence ends at ".", "!" or "?" (and any closing quote or bracket) before a space and
no small letter; in scripts that write no spaces, behind their full stop. "Mr. Smith" is
cut in two, as by any rule without a list of abbreviations; to next-sentence prediction
that matters little.
"""

import re
import textwrap

LONGEST = 10_000
"""Characters; a longer sentence, of a text without full stops, is cut at spaces."""

_END = re.compile(
    r"""([.!?؟।]["'”’)\]]*)\s+(?=["'“‘(\[]*(.))|([。！？][”’」』）]*)\s*"""
)


def split_sentences(text: str) -> list[str]:
    """Cuts a text into sentences, and makes every space in them a plain one.

    >>> split_sentences('He said "no." She left.')
    ['He said "no."', 'She left.']
    """
    text = " ".join(text.split())
    sentences, start = [], 0
    for end in _END.finditer(text):
        following = end.group(2)
        if following is None or not following.islower():
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [part for s in sentences if s for part in cut_long(s)]


def cut_long(sentence: str) -> list[str]:
    """Cuts a sentence of more than `LONGEST` characters at spaces, if there are any."""
    if len(sentence) <= LONGEST:
        return [sentence]
    return textwrap.wrap(sentence, LONGEST, break_on_hyphens=False)
