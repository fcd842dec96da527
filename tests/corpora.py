"""Small corpora that several tests prepare."""

from bert_keras import CorpusFormat, WordPieceTokenizer, prepare_corpus

SENTENCES = CorpusFormat("sentences")


def write(path, documents):
    """Writes documents in the format of 2018."""
    path.write_text("\n\n".join(map("\n".join, documents)), encoding="utf-8")
    return path


def files(folder):
    """Returns name -> bytes of all that is in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def prepared(folder, documents, vocabulary, **options):
    """Returns the shards of some documents, lists of sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    path = write(folder / "corpus.txt", documents)
    tokenizer = WordPieceTokenizer(vocabulary, **options)
    return prepare_corpus([path], tokenizer, folder / "shards", corpus=SENTENCES)
