"""Captions to tokens for the metrics of caption quality.

`ptb`: Stanford's Penn Treebank tokenizer without punctuation, as COCO's evaluation does; it needs Java. `plain`:
`tokenize`, for machines without; a value moves by some tenths, so every number says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from capbias_core.errors import installed, need, unknown_name
from capbias_core.prepare.java import has_java, java
from capbias_core.prepare.text import tokenize

PTB, PLAIN = "ptb", "plain"
TOKENIZERS = {PTB: "PTB tokens", PLAIN: "capbias's own tokens, not the PTB tokens of COCO's evaluation"}
BLOCK = 20_000


def default_tokenizer() -> str:
    """`ptb` if Java and its program (in the package pycocoevalcap) are here, else `plain`."""
    return PTB if has_java() and installed("pycocoevalcap") else PLAIN


def quality_tokens(captions: Sequence[str], tokenizer: str) -> list[str]:
    """The tokens of each caption, joined by spaces; one an entry, '' where a caption has none.

    Raises CapbiasError for an unknown tokenizer, and for `ptb` where there is no Java.
    """
    if tokenizer not in TOKENIZERS:
        raise unknown_name("tokenizer", tokenizer, TOKENIZERS)
    if tokenizer == PLAIN:
        return [" ".join(tokenize(caption)) for caption in captions]
    return _treebank([" ".join(caption.split()) for caption in captions])


def _treebank(captions: list[str]) -> list[str]:
    """Captions of one line each, by the Java program; pycocoevalcap's own wrapper writes into its package's folder."""
    need("The tokenizer ptb", "pycocoevalcap")
    from pycocoevalcap.tokenizer import ptbtokenizer

    jar = Path(ptbtokenizer.__file__ or "").with_name(ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR)
    options = ["-preserveLines", "-lowerCase", "-encoding", "utf-8"]
    lines: list[str] = []
    for start in range(0, len(captions), BLOCK):
        block = captions[start : start + BLOCK]
        with java(["-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer", *options]) as ask:
            lines += ask(block, len(block), last=True)
    return [" ".join(word for word in line.split() if word not in ptbtokenizer.PUNCTUATIONS) for line in lines]
