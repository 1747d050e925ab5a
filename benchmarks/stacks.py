"""How fast do all networks of a run train, against a plain PyTorch loop? `python -m benchmarks.stacks --data FOLDER`.

Each row is a piece of work by `capbias.score`, from the captions to the rows, on one device. The plain loop is what one
writes from the papers: PyTorch's layers, batches of mixed captions, padded (and packed for recurrent layers), one
network after the other, with the same early stopping. Of each kind of network in the run it trains the first, on the
captions of the run, and is taken to need as long for each of the others. It scores nothing, so it is a lower bound.

On a GPU seconds are those of a clock, on a CPU of its processor time, since others may use it too. There the product
trains in threads; with `--stacked` it trains as on a GPU.

FOLDER has annotations/ (attributes.csv, captions.json, objects.csv) and results/. The goals of a GPU need no option. On
a CPU take fewer images, seeds and epochs, such as

    python -m benchmarks.stacks --data FOLDER --device cpu --images 400 --seeds 2 --captions 1 --captioners sat nic
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

import capbias_core as capbias
from capbias_core.attackers import FROM_SCRATCH
from capbias_core.attackers.base import Training
from capbias_core.attackers.device import DEVICES, choose_device
from capbias_core.attackers.networks.scratch import FittedScratch
from capbias_core.attackers.networks.stacked import StackedAttacker
from capbias_core.attackers.networks.training import caption_losses, logit_count, positions, set_aside
from capbias_core.measures import training as measures_training

SEVEN = ("nic", "sat", "fc", "att2in", "updn", "transformer", "oscar")


class PlainNetwork(nn.Module):
    """The network of an attacker by PyTorch's layers."""

    def __init__(self, settings: Any, words: int, logits: int):
        super().__init__()
        size, hidden, self.recurrent = settings.embedding, settings.hidden, hasattr(settings, "unit")
        self.words, self.dropout = nn.Embedding(words, size, padding_idx=0), nn.Dropout(settings.dropout)
        if self.recurrent:
            unit, two_ways = {"lstm": nn.LSTM, "rnn": nn.RNN}[settings.unit], settings.ways == 2
            more: dict[str, Any] = {"batch_first": True, "bidirectional": two_ways, "dropout": settings.dropout}
            self.encoder, width = unit(size, hidden, settings.layers, **more), settings.ways * hidden
        else:
            layer = nn.TransformerEncoderLayer(size, settings.heads, hidden, dropout=0.0, batch_first=True)
            self.encoder, width = nn.TransformerEncoder(layer, settings.layers, enable_nested_tensor=False), size
        sizes, head = (width, *settings.head, logits), []
        for before, after in zip(sizes, sizes[1:], strict=False):
            head += [nn.Linear(before, after), nn.ReLU()]
        self.head = nn.Sequential(*head[:-1])

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        states = self.dropout(self.words(ids))
        if self.recurrent:
            _, last = self.encoder(pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False))
            last = last[0] if isinstance(last, tuple) else last
            ways = 2 if self.encoder.bidirectional else 1
            return self.head(self.dropout(torch.cat(list(last[-ways:]), dim=1)))
        there = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
        read = self.encoder(states + positions(states), src_key_padding_mask=~there)
        return self.head((read * there[..., None]).sum(dim=1) / there.sum(dim=1, keepdim=True))


def plain_loop(settings: Any, corpus: Any, training: Training, n_values: int, device: torch.device) -> None:
    """Train one network as one would write it."""
    torch.manual_seed(training.seed)
    captions = [corpus.distinct[number] for number in corpus.copy_of[training.rows]]
    vocabulary = {word: place for place, word in enumerate(sorted({w for c in captions for w in c.split()}), start=2)}
    network = PlainNetwork(settings, len(vocabulary) + 2, logit_count(training.labels, n_values)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    labels = torch.as_tensor(training.labels, device=device)
    kept, aside = map(torch.from_numpy, set_aside(len(captions), training.seed, settings.patience))
    lowest, chosen, best = float("inf"), 0, {}

    def losses(rows: Tensor) -> Tensor:
        ids = [torch.tensor([vocabulary.get(word, 1) for word in captions[row].split()] or [1]) for row in rows]
        lengths = torch.tensor([len(each) for each in ids])
        return caption_losses(network(pad_sequence(ids, batch_first=True).to(device), lengths), labels[rows.to(device)])

    for epoch in range(settings.epochs):
        network.train()
        for part in torch.randperm(len(kept)).split(settings.batch):
            optimizer.zero_grad()
            losses(kept[part]).mean().backward()
            optimizer.step()
        if not len(aside):
            continue
        network.eval()
        with torch.no_grad():
            loss = torch.cat([losses(part) for part in aside.split(512)]).mean().item()
        if loss < lowest:
            lowest, chosen, best = loss, epoch, {name: value.clone() for name, value in network.state_dict().items()}
        if epoch - chosen >= settings.patience:
            break
    network.load_state_dict(best or network.state_dict())


@dataclass
class Watched:
    """The trainings of a piece of work: their attacker, corpus, trainings and number of values; and seconds."""

    clock: Callable[[], float]
    calls: list[tuple[Any, Any, list[Training], int]] = field(default_factory=list)
    training: float = 0.0
    attributing: float = 0.0

    @property
    def networks(self) -> int:
        return sum(len(trainings) for _, _, trainings, _ in self.calls)


@contextmanager
def watched(options: argparse.Namespace, clock: Callable[[], float]) -> Iterator[Watched]:
    """A block in which all trainings and attributions are noted, with as many epochs as asked for."""
    seen, fit, attribute = Watched(clock), StackedAttacker.fit_many, FittedScratch.contributions
    load = measures_training.load_attacker

    def loaded(*given: Any, **more: Any) -> Any:
        attacker: Any = load(*given, **more)
        return replace(attacker, epochs=options.epochs) if options.epochs else attacker

    def fit_many(self: Any, corpus: Any, trainings: list[Training], n_values: int, tick: Any) -> Iterator:
        seen.calls.append((self, corpus, trainings, n_values))
        fits = (self.fit_in_stacks if options.stacked else lambda *given: fit(self, *given))(
            corpus, trainings, n_values, tick
        )
        while True:
            begun = clock()
            fitted = next(fits, None)
            seen.training += clock() - begun
            if fitted is None:
                return
            yield fitted

    def contributions(self: Any, *given: Any) -> Any:
        begun = clock()
        found = attribute(self, *given)
        seen.attributing += clock() - begun
        return found

    with (
        patch.object(StackedAttacker, "fit_many", fit_many),
        patch.object(FittedScratch, "contributions", contributions),
        patch.object(measures_training, "load_attacker", loaded),
    ):
        yield seen


def work(options: argparse.Namespace) -> dict[str, Callable[[Data], None]]:
    """The pieces of work of the table of goals, by name."""
    first, *_ = options.captioners
    table: dict[str, Callable[[Data], None]] = {
        f"LIC of {first}, lstm_bi": lambda data: data.score([first], "lstm_bi", ["lic"]),
        f"LIC_M of {len(options.captioners)}, lstm_bi": lambda data: data.score(
            options.captioners, "lstm_bi", ["LIC_M"]
        ),
    }
    if len(options.captioners) > 1:
        every = options.captioners
        table[f"LIC of {len(every)}, lstm_bi"] = lambda data: data.score(every, "lstm_bi", ["lic"])
    for name in ("rnn", "transformer_5h"):
        table[f"LIC of {first}, {name}"] = lambda data, name=name: data.score([first], name, ["lic"])
        table[f"DBAC of {first}, {name}"] = lambda data, name=name: data.score([first], name, ["dbac"])

    def six(data: Data) -> None:
        for name in FROM_SCRATCH:
            data.score([first], name, ["dbac"])

    table[f"DBAC of {first}, {len(FROM_SCRATCH)} encoders"] = six
    table[f"words of {first}, lstm_bi"] = lambda data: data.score([first], "lstm_bi", ["LIC_M"], words=True)
    return table


@dataclass
class Data:
    """Captions, labels, human captions and objects of the first labelled images, and how they are scored."""

    options: argparse.Namespace

    def __post_init__(self) -> None:
        folder, options = self.options.data, self.options
        labels = pd.read_csv(folder / "annotations" / "attributes.csv", dtype=str)
        labels = labels[labels["gender"].isin(["Female", "Male"])]
        human = json.loads((folder / "annotations" / "captions.json").read_text())["annotations"]
        captions = {name: json.loads((folder / "results" / f"{name}.json").read_text()) for name in options.captioners}
        ids = {str(row["image_id"]) for row in human}
        ids &= set.intersection(*({str(row["image_id"]) for row in rows} for rows in captions.values()))
        labels = labels[labels["image_id"].isin(ids)]
        if options.images:
            labels = labels.groupby("gender").head(options.images // 2)
        ids, seen = set(labels["image_id"]), dict.fromkeys(labels["image_id"], 0)
        self.labels, self.human = labels, []
        for row in human:
            image = str(row["image_id"])
            if image in ids and seen[image] < options.captions:
                seen[image] += 1
                self.human.append({"image_id": image, "caption": row["caption"]})
        self.captions = {name: [row for row in rows if str(row["image_id"]) in ids] for name, rows in captions.items()}
        objects = pd.read_csv(folder / "annotations" / "objects.csv", dtype=str)
        self.objects = objects[objects["image_id"].isin(ids)]

    def score(self, captioners: list[str], attacker: str, metrics: list[str], words: bool = False) -> None:
        report = capbias.score(
            {name: self.captions[name] for name in captioners},
            *(self.labels, "gender", self.human if words or metrics != ["LIC_M"] else None),
            objects=self.objects if metrics == ["dbac"] else None,
            metrics=metrics,
            attacker=attacker,
            device=self.options.device,
            seeds=self.options.seeds,
            words=words,
        )
        if report.failed or report.refused:
            raise SystemExit("\n".join((*report.failed, *report.refused)))
        if words:
            _ = report.words


def loop_seconds(seen: Watched, device: torch.device) -> float:
    """Seconds of plain loops for as many networks: of each call the first, times its networks."""
    total = 0.0
    for settings, corpus, trainings, n_values in seen.calls:
        begun = seen.clock()
        plain_loop(settings, corpus, trainings[0], n_values, device)
        if device.type == "cuda":
            torch.cuda.synchronize()
        total += (seen.clock() - begun) * len(trainings)
    return total


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--captioners", nargs="+", default=list(SEVEN))
    parser.add_argument("--images", type=int, help="the first so many labelled images (default: all)")
    parser.add_argument("--captions", type=int, default=5, help="human captions of an image")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="at most (default: those of the papers)")
    parser.add_argument("--stacked", action="store_true", help="train in stacks on a CPU too")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    return parser.parse_args()


def main() -> None:
    warnings.simplefilter("ignore")
    options = arguments()
    device = choose_device(options.device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{where}, torch {torch.__version__}, {'stacks' if options.stacked or device.type == 'cuda' else 'threads'}")
    data = Data(options)
    print(f"{len(data.labels):,} images, {options.seeds} seeds, human captions: {options.captions}")
    print("| work | networks | seconds | of these training | attributing | plain loop | ratio |\n|" + " --- |" * 7)
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    with watched(argparse.Namespace(epochs=1, stacked=options.stacked), clock) as seen:  # what comes first is slower
        data.score(options.captioners[:1], "rnn", ["LIC_M"])
    loop_seconds(seen, device)
    for name, score in work(options).items():
        if options.only not in name:
            continue
        with watched(options, clock) as seen:
            begun = clock()
            score(data)
            seconds = clock() - begun
        loop = loop_seconds(seen, device)
        parts = (f"{part:.1f}" for part in (seconds, seen.training, seen.attributing, loop))
        print(f"| {name} | {seen.networks} | {' | '.join(parts)} | {loop / seconds:.2f} |", flush=True)
    if device.type == "cuda":
        print(f"at most {torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB of the device's memory")


if __name__ == "__main__":
    main()
