"""The trainer of a measure: which captions each attacker trains on and reads; and what a run leaves out."""

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from capbias_core.errors import Cancelled, NotMeasurable
from capbias_core.measures import training as trainer
from capbias_core.measures.base import run_available
from capbias_core.measures.training import caption_lists, unread_notes
from capbias_core.prepare.split import balanced_split
from capbias_core.prepare.tokens import Tokens


def caption_list(texts: list[str]) -> trainer.CaptionList:
    return trainer.CaptionList(np.arange(40), Tokens.read(texts), np.arange(40))


IMAGES = tuple(map(str, range(40)))


class Noting:
    """An attacker that learns nothing, and notes what it was asked to fit and to read."""

    def __init__(self):
        self.fitted: list[list[str]] = []  # of each attacker, its captions
        self.read: list[tuple[str, list[str]]] = []

    def corpus(self, captions):
        return list(captions)

    def fit_many(self, corpus, trainings, n_values, tick):
        for done, training in enumerate(trainings, start=1):
            captions = [corpus[row] for row in training.rows]
            self.fitted.append(captions)
            tick(done / len(trainings), "")
            side = captions[0].split()[0]
            yield SimpleNamespace(logits=lambda corpus, rows, side=side: self.logits(side, corpus, rows))

    def logits(self, side, corpus, rows):
        self.read.append((side, [corpus[row] for row in rows]))
        last = [corpus[row].split()[-1] for row in rows]
        return np.array([[float(word) if word.isdigit() else -1.0] for word in last])


class Stopping(Noting):
    """It is stopped when it has trained so many attackers; what it reads depends on what it trained on."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def __repr__(self) -> str:
        return "the same each time"

    def fit_many(self, corpus, trainings, n_values, tick):
        for fitted in super().fit_many(corpus, trainings, n_values, tick):
            if len(self.fitted) > self.most:
                raise Cancelled
            yield fitted

    def logits(self, side, corpus, rows):
        return super().logits(side, corpus, rows) * len(side) + len(self.fitted[0])


def test_finished_attackers_of_a_run_that_was_stopped_are_not_trained_again(tmp_path):
    """Guesses are those of an undisturbed run; what is damaged and another set of captions are trained anew."""
    y = np.arange(40) % 2
    splits = [balanced_split(y, 2, seed) for seed in range(3)]
    model, human = ([caption_list([f"{word} {image}" for image in range(40)])] for word in ("a", "bbb"))

    def guesses(attacker, human=human, kept=tmp_path):
        run = trainer.AttackerTrainer(attacker, 2, y, IMAGES, lambda *_: None, 6, kept=kept)
        sides = run.crossed(model, human, splits)
        assert run.done == 6
        return {name: side.probabilities.tolist() for name, side in sides.items()}

    whole = guesses(Stopping(99), kept=None)
    with pytest.raises(Cancelled):
        guesses(Stopping(4))
    again, once_more, other = Stopping(99), Stopping(99), Stopping(99)
    assert guesses(again) == whole and len(again.fitted) == 2
    with closing(sqlite3.connect(tmp_path / "guesses.sqlite")) as db, db:
        db.execute("UPDATE cache SET value = x'00' WHERE key = (SELECT key FROM cache)")
    assert guesses(once_more) == whole and len(once_more.fitted) == 1
    (tmp_path / "guesses.sqlite").write_bytes(b"broken" * 999)
    guesses(other, [caption_list([f"a {image} {image}" for image in range(40)])])
    assert len(other.fitted) == 6


@pytest.mark.parametrize("aligned", [False, True])
def test_each_index_and_split_has_an_attacker_with_its_captions(aligned):
    attacker = Noting()
    reports = []
    own = trainer.AttackerTrainer(attacker, 2, np.arange(40) % 2, IMAGES, lambda *report: reports.append(report), 6)
    # The caption of image 7 at index 1 is "word1 7": what a fit is given and what it is scored on can be read off it.
    lists = [caption_list([f"word{index} {image}" for image in range(40)]) for index in (0, 1)]
    splits = [balanced_split(np.arange(40) % 2, 2, seed) for seed in range(3)]
    found = list(own.logits(lists, splits, "captions", lists[:1] if aligned else None))
    assert [(index, split.seed) for index, split, _, _ in found] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    for texts, (index, split, test, logits) in zip(attacker.fitted, found, strict=True):
        # Aligned to index 0, which never says word1.
        word = "<unk>" if aligned and index else f"word{index}"
        seen = {str(image) for image in split.train}
        assert texts == [f"{word} {image if str(image) in seen else '<unk>'}" for image in split.train]
        assert sorted(test) == list(split.test)
        if not aligned:
            assert logits[:, 0].tolist() == test.tolist()
    assert reports == [(pytest.approx(n / 6), f"captions, attacker {n} of 6") for n in range(1, 7)]


def test_each_attacker_reads_the_held_out_captions_of_both_sides():
    """People write `human`, a list and the image; the model its name and the image. Unknown words differ by split."""
    attacker, images = Noting(), range(40)
    own = trainer.AttackerTrainer(attacker, 2, np.arange(40) % 2, IMAGES, lambda *report: None, 6)
    lists = [caption_list([f"human {n} {i}" for i in images]) for n in "ab"]
    model = [caption_list([f"model human a b {i}" for i in images])]
    splits = [balanced_split(np.arange(40) % 2, 2, seed) for seed in range(2)]
    found = own.crossed(model, lists, splits)
    people = {n: [f"human {n} <unk>"] * 4 for n in "ab"}  # images held out: the model's training captions lack them
    expected = []
    for split in splits:
        expected.append(("model", [f"model human a b {i}" for i in split.test]))
        expected += [("model", people["a"]), ("model", people["b"])]
    for n in "ab":
        for split in splits:
            expected += [("human", people[n]), ("human", [f"model human a b {i}" for i in split.test])]
    assert attacker.read == expected
    sizes = {name: len(side.image) for name, side in found.items()}
    assert sizes == {"model": 8, "human": 16, "model_by_human": 16, "human_by_model": 16}
    assert set(found["human_by_model"].image[found["human_by_model"].seed == 1]) == set(splits[1].test)


def lacking():
    raise NotMeasurable("No word counts.", "Load more.", "objects")


def test_only_what_the_inputs_do_not_allow_is_left_out():
    found, notes, reasons = run_available({"one": lambda: (1, "a note."), "two": lacking}, "X ")
    assert found == {"one": 1} and notes == ["X one: a note."] and reasons == {"X two": "No word counts."}
    with pytest.raises(NotMeasurable, match="No word counts") as error:
        run_available({"two": lacking})
    assert (error.value.hint, error.value.arguments) == ("Load more.", ("objects",))
    with pytest.raises(ZeroDivisionError):
        run_available({"one": lambda: (1, ""), "two": lambda: 1 / 0})


def test_captions_beyond_the_last_index_are_counted():
    """Of four images three have a second caption, one a third and a fourth."""
    rows = [(image, index, "a dog") for image, n in zip("1234", (4, 2, 2, 1), strict=True) for index in range(n)]
    frame = pd.DataFrame(rows, columns=["image_id", "caption_index", "caption"])

    def lists_of(frame: pd.DataFrame) -> list:
        return caption_lists(frame, frame["caption"], ["1", "2", "3", "4"], np.array([0, 1, 0, 1]), 2)

    lists = lists_of(frame)
    assert [len(own.masked) for own in lists] == [4, 3] and [own.unread for own in lists] == [0, 2]
    (note,) = unread_notes("the human captions", lists)
    assert "2 of 9" in note
    assert unread_notes("captions", lists_of(frame[frame["caption_index"] < 2])) == []
