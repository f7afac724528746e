"""The network, and the files that it is kept in."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from shared import texts

WEIGHTS, LABELS = "model.pt", "labels.json"


class Classifier(nn.Module):
    """The mean of a text's words, and a linear layer."""

    # Your code: another network goes here; evaluation and endpoint load whatever `save` wrote.
    def __init__(self, labels: list[str], width: int = 32) -> None:
        super().__init__()
        self.labels = labels
        self.words = nn.EmbeddingBag(texts.BUCKETS, width, mode="mean")
        self.out = nn.Linear(width, len(labels))

    def forward(self, words: Tensor, starts: Tensor) -> Tensor:
        scores: Tensor = self.out(self.words(words, starts))
        return scores


def save(network: Classifier, folder: Path) -> None:
    torch.save(network.state_dict(), folder / WEIGHTS)
    (folder / LABELS).write_text(json.dumps(network.labels))


def load(folder: Path) -> Classifier:
    network = Classifier(json.loads((folder / LABELS).read_text()))
    network.load_state_dict(torch.load(folder / WEIGHTS, weights_only=True))
    return network.eval()


@torch.inference_mode()
def accuracy(network: Classifier, given: list[str], labels: list[str]) -> float:
    chosen = network(*texts.encoded(given)).argmax(dim=1).tolist()
    right = sum(
        network.labels[number] == label for number, label in zip(chosen, labels, strict=True)
    )
    return right / len(labels)
