"""The text that is on every machine: documentation in Python and its packages.

Several megabytes of connected English, nothing to download, nobody's files copied: the
topics of Python's own help, and the docstrings of the standard library and of the
packages that this one needs. Source files are read as text with `ast`, never imported.
"""

import ast
import importlib.util
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from bert_keras.pretraining.corpus import Document, split_sentences

PACKAGES = ("numpy", "keras", "keras_hub", "tensorflow")
_LEAST_WORDS = 6  # of a paragraph
_LEAST_PROSE = 0.8  # share of letters and spaces: below it, a paragraph is code
_LEAST_SENTENCES = 2  # of a document: next-sentence prediction needs two
_BLANK_LINE = re.compile(r"\n\s*\n")


def default_documents(most_characters: int) -> Iterator[Document]:
    """Yields documents until they hold `most_characters`, always in the same order.

    A document is a help topic or a docstring: its paragraphs of prose, as sentences.
    """
    characters = 0
    seen: set[str] = set()
    for text in _texts():
        if text in seen:
            continue
        seen.add(text)
        document = _prose(text)
        if len(document) >= _LEAST_SENTENCES:
            yield document
            characters += sum(map(len, document))
            if characters >= most_characters:
                return


def _texts() -> Iterator[str]:
    # Imported late: the module is large, and it is only needed here.
    from pydoc_data.topics import topics

    yield from (topics[name] for name in sorted(topics))
    for root in [Path(sysconfig.get_path("stdlib")), *map(_folder_of, PACKAGES)]:
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root).parts
            if not {"site-packages", "test", "tests"}.intersection(inside):
                yield from _docstrings(path)


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)  # finds it, but does not import it
    return Path(spec.submodule_search_locations[0])


def _docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # templates and deliberately broken sources
        return
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring


def _prose(text: str) -> Document:
    sentences: Document = []
    for paragraph in _BLANK_LINE.split(text):
        letters = sum(
            character.isalpha() or character.isspace() for character in paragraph
        )
        is_prose = letters >= _LEAST_PROSE * len(paragraph) and ">>>" not in paragraph
        if is_prose and len(paragraph.split()) >= _LEAST_WORDS:
            sentences += split_sentences(paragraph)
    return sentences
