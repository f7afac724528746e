"""Trains the classifier, and leaves a checkpoint that can be served after each epoch."""

from __future__ import annotations

import argparse
import os
import random
import shutil
from pathlib import Path

import torch
from torch import nn

from orchestration_runtime import Checkpoints, Folders, reported_failures
from shared import model, texts

BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser()
    # Your code: a hyperparameter of the pipeline is an option here.
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=0.01)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    given, labels = texts.read(Path(os.environ["SM_CHANNEL_TRAIN"]))
    network = model.Classifier(sorted(set(labels)))
    optimizer = torch.optim.Adam(network.parameters(), lr=options.learning_rate)
    folders = Folders.from_environment()
    epochs = Checkpoints(folders.checkpoints, prefix="epoch-", counts="epoch")
    last = epochs.newest()  # Of an earlier start of this job, which was interrupted.
    done = 0
    if last:
        done = last.number
        network.load_state_dict(model.load(last.path).state_dict())
    targets = torch.tensor([network.labels.index(label) for label in labels])
    for epoch in range(done + 1, options.epochs + 1):
        order = random.Random(epoch).sample(range(len(given)), len(given))
        total = 0.0
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            scores = network(*texts.encoded(given[number] for number in batch))
            # Your code: the loss of a batch.
            loss = nn.functional.cross_entropy(scores, targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        metrics = {"loss": total / len(order), "accuracy": model.accuracy(network, given, labels)}
        # SageMaker finds these by the regular expressions in `metrics` of the pipeline.
        shown = " ".join(f"train:{name}={value:.4f}" for name, value in metrics.items())
        print(f"epoch={epoch} {shown}", flush=True)
        epochs.save(epoch, lambda folder: write(network, folder), metrics)
    newest = epochs.newest()
    if newest:
        newest.copy_to(folders.model)


def write(network: model.Classifier, folder: Path) -> None:
    """Write the model, and the code that serves it beside it."""
    model.save(network, folder)
    here, code = Path(__file__).parent, folder / "code"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(here / "shared", code / "shared", ignore=ignored, dirs_exist_ok=True)
    shutil.copy(here / "inference.py", code)


if __name__ == "__main__":
    with reported_failures():
        main()
