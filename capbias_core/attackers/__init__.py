"""Attackers: an encoder plus a head that guesses the protected attribute from a masked caption.

To add one, write its file and name it in `ATTACKERS`; a further pretrained encoder is a row alone. A class is imported
where it is used, so that the web server's process never imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from capbias_core.attackers.base import Attacker
from capbias_core.errors import CapbiasError, need
from capbias_core.language.files import MINILM, ModelFiles, find_model


class Seconds(NamedTuple):
    """Rough seconds of an attacker on two free cores.

    a_fit: to train on 6,000 captions. to_explain: the words of 1,000 different captions, by one trained attacker.
    to_read: 1,000 different captions, once, before any training.
    """

    a_fit: float
    to_explain: float = 0.0
    to_read: float = 0.0


@dataclass(frozen=True)
class AttackerEntry:
    """What is known about an attacker without importing it.

    model: the pretrained encoder, a folder or a name as in language/files.py; '' for an encoder from scratch. rescores:
    trained ones are kept with the scores of captions, so that an edited caption is scored at once.
    """

    name: str
    title: str
    location: str
    in_process: bool
    folds: int
    seconds: Seconds
    model: str = ""
    rescores: bool = False

    @property
    def one_seed_per_thread(self) -> bool:
        """Whether attackers train side by side on a CPU, each on one core: networks from scratch."""
        return self.location.startswith(("recurrent:", "transformer:"))

    @property
    def attends(self) -> bool:
        """Whether it has attention between words: a Transformer, trained from scratch or before."""
        return bool(self.model) or self.location.startswith("transformer:")


# Where pretrained encoders are on the Hugging Face hub; none is fetched.
SENTENCES = "sentence-transformers/"
BERT = "bert-base-uncased"
FROZEN = "frozen:FrozenAttacker"
# Of frozen encoders of twelve layers of 768 and of six, by their size beside MiniLM's, which was measured.
BASE, HALF = Seconds(1.0, 1000.0, 22.0), Seconds(1.0, 500.0, 12.0)

ATTACKERS = {
    entry.name: entry
    for entry in (
        AttackerEntry(
            "ngram",
            "linear, 1- and 2-grams (preview)",
            "ngram:NgramAttacker",
            True,
            10,
            Seconds(0.1, 0.2),
            rescores=True,
        ),
        AttackerEntry(
            "lstm_bi", "bidirectional LSTM (the LIC paper's)", "recurrent:lstm_bi", False, 5, Seconds(250.0, 30.0)
        ),
        AttackerEntry("lstm", "one-way LSTM (the DBAC paper's)", "recurrent:lstm", False, 5, Seconds(45.0, 12.0)),
        AttackerEntry("rnn", "one-way RNN (the DBAC paper's)", "recurrent:rnn", False, 5, Seconds(20.0, 5.0)),
        AttackerEntry(
            "rnn_bi", "bidirectional RNN (the DBAC paper's)", "recurrent:rnn_bi", False, 5, Seconds(40.0, 10.0)
        ),
        AttackerEntry(
            "transformer_1h",
            "Transformer, 1 head (the DBAC paper's)",
            "transformer:one_head",
            False,
            5,
            Seconds(20.0, 6.0),
        ),
        AttackerEntry(
            "transformer_5h",
            "Transformer, 5 heads (the DBAC paper's)",
            "transformer:five_heads",
            False,
            5,
            Seconds(20.0, 6.0),
        ),
        AttackerEntry(
            "minilm", "MiniLM-L6-v2, frozen (the DBAC paper's)", FROZEN, False, 5, Seconds(1.0, 130.0, 3.0), MINILM
        ),
        AttackerEntry(
            "mpnet", "MPNet, frozen (the DBAC paper's)", FROZEN, False, 5, BASE, f"{SENTENCES}all-mpnet-base-v2"
        ),
        AttackerEntry(
            "distilroberta",
            "DistilRoBERTa, frozen (the DBAC paper's)",
            FROZEN,
            False,
            5,
            HALF,
            f"{SENTENCES}all-distilroberta-v1",
        ),
        AttackerEntry(
            "distilbert", "DistilBERT, frozen (the DBAC paper's)", FROZEN, False, 5, HALF, "distilbert-base-uncased"
        ),
        AttackerEntry(
            "bert_pre", "BERT, frozen (the LIC paper's)", "frozen:bert_pre", False, 5, BASE._replace(a_fit=3.0), BERT
        ),
        AttackerEntry(
            "bert_ft",
            "BERT, fine-tuned (the LIC paper's)",
            "fine_tuned:FineTunedAttacker",
            False,
            5,
            Seconds(3000.0, BASE.to_explain),
            BERT,
        ),
    )
}

PRETRAINED = {name for name, entry in ATTACKERS.items() if entry.model}


def attacker_entry(name: str) -> AttackerEntry:
    """The table row of an attacker, or one made for a pretrained encoder: nothing is looked for, see `encoder_files`.

    name: in ATTACKERS; or a folder or name of any model of sentence-transformers or transformers, which is then frozen
    as `minilm` is; or `bert_ft=FOLDER`, a row of a pretrained encoder with the model of that folder.
    """
    row, given, model = name.partition("=")
    if given and row in PRETRAINED:
        return replace(ATTACKERS[row], model=model)
    if name in ATTACKERS:
        return ATTACKERS[name]
    shown = Path(name.rstrip("/")).name or name
    return AttackerEntry(shown, f"{shown}, frozen", FROZEN, False, 5, BASE, name)


def encoder_files(entry: AttackerEntry) -> ModelFiles:
    """The files of a pretrained encoder. Raises CapbiasError that says how to get them where they are not here."""
    if entry.name in ATTACKERS and entry.name not in PRETRAINED:
        raise CapbiasError(
            f"a model in a folder called {entry.name}, as an attacker of another kind is",
            "another name",
            "Rename the folder.",
        )
    try:
        return find_model(entry.model, f"attacker {entry.name}, a text encoder")
    except CapbiasError as error:
        if entry.name in ATTACKERS:
            remedy = f"{error.remedy} As attacker, a folder is named {entry.name}=FOLDER."
            raise CapbiasError(error.got, error.expected, remedy) from None
        expected = f"one of: {', '.join(sorted(ATTACKERS))}; or a text encoder, {error.expected}"
        raise CapbiasError(f"attacker {entry.model!r}, which is not on this machine", expected, error.remedy) from None


def need_packages(entry: AttackerEntry) -> None:
    """Raises MissingExtra if what an attacker trains with is not installed. Imports nothing."""
    if not entry.in_process:
        need(f"The attacker {entry.name}", "torch", *(("transformers", "sentence_transformers") if entry.model else ()))


def load_attacker(
    name: str, device: str = "auto", model: ModelFiles | None = None, cache: str | None = None
) -> Attacker:
    """The attacker itself; for the ones with torch this imports torch. device: where those train (see device.py).

    model: files of the pretrained encoder, where they are known. cache: a folder for its embeddings, None for none.
    """
    entry = attacker_entry(name)
    need_packages(entry)
    module, _, cls = entry.location.partition(":")
    make = getattr(import_module(f"capbias_core.attackers.{module}"), cls)
    if entry.model:
        files = model or encoder_files(entry)
        return replace(make(files.path, files.digest, cache), device=device)
    attacker = make()
    return replace(attacker, device=device) if hasattr(attacker, "device") else attacker
