"""LIC with scikit-learn alone, the same number as `capbias score --metric lic --attacker ngram --seeds 10`.

    python examples/lic_in_60_lines.py captions.json references.json labels.csv

captions.json: a list of {"image_id", "caption"}, one per image. references.json: the same, several per image.
labels.csv: image_id, gender. Images with all three count. Labels are binary, assigned by others, and incomplete.
If images have different numbers of references, capbias also reads those that only half of the images have.
"""

import hashlib
import re
import sys
import tomllib
from importlib.resources import files

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

WORDS = tomllib.loads((files("capbias_core") / "attributes" / "gender.toml").read_text())["words"]
MASKED = {word for words in WORDS.values() for word in words}


def mask(caption):
    """Lower-case words without punctuation; each gendered word becomes a mask."""
    words = re.findall(r"<\w+>|'(?:s|re|ve|ll|d|m|t)\b|[a-z0-9]+", caption.lower())
    return ["<gender>" if word in MASKED else word for word in words]


def split(labels, seed):
    """As many images of each value, in an order by seed and image ID; a tenth of them is held out."""
    key = int(np.random.SeedSequence([seed, 0]).generate_state(1)[0]).to_bytes(4, "little")
    order = sorted(labels, key=lambda image: hashlib.blake2b(image.encode(), digest_size=8, key=key).digest()[::-1])
    groups = [[image for image in order if labels[image] == value] for value in WORDS]
    size = min(map(len, groups))
    held = max(1, round(size * 0.1))
    return [i for group in groups for i in group[held:size]], [i for group in groups for i in group[:held]]


def terms(words):
    """Words and pairs of neighbouring words."""
    return words + [" ".join(pair) for pair in zip(words, words[1:], strict=False)]


def leakage(captions, labels, train, test):
    """For each held-out caption the attacker's confidence if its guess is right, else 0."""
    counts = CountVectorizer(analyzer=lambda words: set(terms(words)), min_df=2)
    attacker = LogisticRegression(C=0.05, solver="newton-cg", tol=1e-8, max_iter=1000)
    attacker.fit(counts.fit_transform([captions[i] for i in train]), [labels[i] for i in train])
    chances = attacker.predict_proba(counts.transform([captions[i] for i in test]))
    return chances.max(axis=1) * (attacker.classes_[chances.argmax(axis=1)] == [labels[i] for i in test])


def lic(captions, references, labels, seeds=10):
    """LIC, LIC_M and LIC_D x100. captions: image -> caption; references: image -> as many captions each."""
    captions = {image: mask(caption) for image, caption in captions.items()}
    scores = []
    for seed in range(seeds):
        train, test = split(labels, seed)
        known = {word for image in train for word in captions[image]}
        people = []
        for index in range(min(len(references[image]) for image in labels)):
            words = {image: mask(references[image][index]) for image in labels}
            aligned = {image: [word if word in known else "<unk>" for word in words[image]] for image in labels}
            people.append(leakage(aligned, labels, train, test))
        scores.append((leakage(captions, labels, train, test).mean(), np.concatenate(people).mean()))
    model, human = 100 * np.mean(scores, axis=0)
    return model - human, model, human


if __name__ == "__main__":
    captions, references = (pd.read_json(path, dtype={"image_id": str}) for path in sys.argv[1:3])
    captions = captions.set_index("image_id")["caption"].to_dict()
    references = references.groupby("image_id")["caption"].apply(list).to_dict()
    table = pd.read_csv(sys.argv[3], dtype=str)
    table = table[table["gender"].isin(WORDS) & table["image_id"].isin(captions.keys() & references.keys())]
    print("LIC {:.2f}, LIC_M {:.2f}, LIC_D {:.2f}".format(*lic(captions, references, dict(table.values))))
