"""The objects nearest to *woman*, *man* and *person* by word vectors: Table 1 of the Gender Score paper (2023).

    python examples/papers/gender_score_words.py --captions captions.csv --labels attributes.csv --vectors glove.txt

Reads captions (the paper: human captions of COCO and Flickr30k), labels with the column gender, and word vectors;
without captions those of the demo. Objects are COCO's names in the captions, and --object-words. The paper prints ranks
without numbers, of all words of its vocabulary; it does not say which words those are, so ranks differ. Takes seconds
and the time to read the vectors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import capbias_core as capbias
from capbias_core.resources import DEMO_FOLDER, PUBLISHED_FILE

WORDS = {"Female": "woman", "Male": "man"}
COSINE, TO_NEUTRAL = "word_object_distance", "word_object_distance_to_neutral"


def cosines_of(table: pd.DataFrame) -> pd.DataFrame:
    """Object, word and their cosine; that with *person* is the value's over its ratio to the neutral word."""
    rows = table[(table["object"] != "") & table["metric"].isin([COSINE, TO_NEUTRAL])]
    wide = rows.pivot_table(index="object", columns=["metric", "direction"], values="value")
    found = {word: wide[COSINE, value] for value, word in WORDS.items()}
    found["person"] = wide[COSINE, "Male"] / wide[TO_NEUTRAL, "Male"]
    return pd.DataFrame(found).rename_axis(columns="word").stack().rename("cosine").dropna().reset_index()


def printed_ranks() -> pd.DataFrame:
    """Vectors, word, object and rank as printed."""
    rows = pd.read_csv(PUBLISHED_FILE, dtype={"table": str})
    rows = rows[(rows["paper"] == "genderscore") & (rows["table"] == "1")]
    named = rows["condition"].str.split(" ", n=1, expand=True)
    return pd.DataFrame({"vectors": rows["encoder"], "word": named[0], "object": named[1], "rank": rows["value"]})


def main(argv: list[str] | None = None) -> pd.DataFrame:
    """The nearest objects of each word, measured and printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=Path, default=DEMO_FOLDER / "results" / "plain.json")
    parser.add_argument("--labels", type=Path, default=DEMO_FOLDER / "attributes.csv")
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--object-words", nargs="*", default=[])
    parser.add_argument("--nearest", type=int, default=5)
    given = parser.parse_args(argv)
    report = capbias.score(
        {given.captions.stem: given.captions},
        labels=given.labels,
        attribute="gender",
        metrics=["word_god"],
        word_vectors=str(given.vectors),
        objects_from="caption",
        object_words=tuple(given.object_words),
        per_object=True,
    )
    found = cosines_of(report.table).sort_values(["word", "cosine"], ascending=[True, False])
    found = found.assign(rank=found.groupby("word").cumcount() + 1)
    found = found[found["rank"] <= given.nearest]
    printed = printed_ranks()
    for vectors, of_vectors in printed.groupby("vectors"):
        names = of_vectors.sort_values("rank").set_index(["word", "rank"])["object"]
        keys = zip(found["word"], found["rank"].astype(float), strict=True)
        found[f"printed, {vectors}"] = [names.get(key, "") for key in keys]
    print(found.round({"cosine": 3}).to_string(index=False))
    return found


if __name__ == "__main__":
    main()
