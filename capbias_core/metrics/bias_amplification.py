"""BA, bias amplification (Zhao et al., EMNLP 2017, BA_MALS; Hirota et al., CVPR 2022, Eq. 2-3 and appendix A.2).

    b_al = c_al / sum_a c_al
    BA   = 1 / |L| * sum_{a, l} (b_al of the model - b_al of the humans) * 1[b_al of the humans > 1 / |A|]

c_al: captions that name the value a and have the word l. Range [-1, 1], shown x100; lower is better. Above 0: words
that go with one value in the human captions go with it more often in the model's. It does not see how often a value
occurs: where most images show men, most words go with men. Where images are few, words go with a value on the human
side by chance, and the model's captions cannot follow: the value falls.

A word that the model never uses beside a value has no b of the model; it adds 0.

>>> import numpy as np
>>> human = CooccurrenceCounts.of(np.array([10, 5, 5, 4, 3, 1.0]), 2, 1)  # word and values: 3 and 1
>>> model = CooccurrenceCounts.of(np.array([10, 5, 5, 4, 4, 0.0]), 2, 1)
>>> float(bias_amplification(human, model, (human, model)))
0.25
"""

from __future__ import annotations

import numpy as np

from capbias_core.metrics.base import CooccurrenceCounts


def bias_amplification(
    human: CooccurrenceCounts, model: CooccurrenceCounts, whole: tuple[CooccurrenceCounts, CooccurrenceCounts]
) -> np.ndarray:
    """Pairs of the two sides, (..., K, L), to (...) values. whole: both sides on all images; the
    human one decides which pairs count."""
    n_values, n_tasks = human.pair.shape[-2:]
    of_human, of_model = _share(human.pair), _share(model.pair)
    change = np.where(_share(whole[0].pair) > 1 / n_values, of_model - of_human, 0.0)
    return np.nan_to_num(change).sum(axis=(-2, -1)) / n_tasks


def _share(pair: np.ndarray) -> np.ndarray:
    """(..., K, L) counts to the share of each value among the captions with a word; nan where there are none."""
    with np.errstate(invalid="ignore"):
        return pair / pair.sum(axis=-2, keepdims=True)
