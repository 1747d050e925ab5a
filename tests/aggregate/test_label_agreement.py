"""How far two tables of labels agree: by hand, beside scikit-learn's kappa, and through the workspace."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from capbias_core import cli
from capbias_core.aggregate.label_agreement import NO_LABEL, label_agreement
from capbias_core.workspace.store import Workspace

VALUES = ("Female", "Male")


def test_every_image_is_counted_once():
    one = pd.Series({"1": "Female", "2": "Female", "3": "Male", "4": "Male"})
    other = pd.Series({"1": "Female", "2": "Male", "3": "Male", "5": "Female"})
    found = label_agreement(one, other, VALUES)
    assert found.counts.to_numpy().tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert list(found.counts.columns) == [*VALUES, NO_LABEL]
    assert (found.images, found.same) == (3, 2)
    assert found.differ.to_numpy().tolist() == [["2", "Female", "Male"]]


def test_kappa_and_interval_are_those_of_others():
    rng = np.random.default_rng(0)
    one = pd.Series(rng.choice(["a", "b", "c"], 200))
    other = one.where(rng.random(200) < 0.7, pd.Series(rng.choice(["a", "b", "c"], 200)))
    found = label_agreement(one, other, ("a", "b", "c"))
    assert found.kappa == pytest.approx(cohen_kappa_score(one, other))
    tenth = pd.Series(["a"] * 10)
    # Wilson's interval of 8 in 10, as Newcombe (1998) and any table print it: 0.490 to 0.943.
    eight = label_agreement(tenth, pd.Series(["a"] * 8 + ["b"] * 2), ("a", "b"))
    assert eight.interval == pytest.approx((0.490, 0.943), abs=5e-4)


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "labels.csv"
    first = ["F" if n % 2 else "M" for n in range(10)]
    second = ["F" if n < 4 else own for n, own in enumerate(first)]
    pd.DataFrame({"image_id": range(10), "first": first, "second": second}).to_csv(path, index=False)
    asked = ["import", str(path), "--kind", "attributes", "--collection", "c", "--workspace", str(tmp_path / "home")]
    assert cli.main([*asked, "--attribute", "gender=first", "gender=second"]) == 0
    return tmp_path / "home"


def test_columns_of_several_annotators_are_a_table_each(place, capsys):
    tables = {
        item.name: item.details["attributes"]["gender"]["column"] for item in Workspace(place).items("attributes")
    }
    assert tables == {"labels first": "first", "labels second": "second"}
    asked = ["labels", "compare", "--collection", "c", "--workspace", str(place)]
    capsys.readouterr()
    assert cli.main([*asked, "--keep", "agreed"]) == 0
    printed = capsys.readouterr().out
    assert "give the same label to 8 of 10 images that both label, 80.0% [49.0, 94.3]" in printed
    agreed = Workspace(place).item("attributes", "agreed", "c")
    assert agreed.images == 8 and agreed.source == "where labels first and labels second agree"
    assert cli.main(asked) == 2, "three tables now: which two is not guessed"
    assert "not 3. Name two of: labels first" in capsys.readouterr().err
    assert cli.main([*asked, "labels first"]) == 2 and cli.main([*asked, "--attribute", "age"]) == 2
