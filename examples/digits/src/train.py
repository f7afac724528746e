"""Trains a digits classifier on any number of hosts; SageMaker's torch_distributed runs it.

Each epoch leaves a servable checkpoint. Training goes on from the newest one, with any number of
replicas: the learning rate and the order of the samples follow the global batch alone.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler, TensorDataset

import checkpoints
import container
import digits
import model

REFERENCE_BATCH = 64
TRAINER_FILE = "trainer.pt"
SERVING_CODE = ("inference.py", "model.py")


@dataclass(frozen=True)
class Progress:
    """How far training is: whole epochs, then samples and steps since."""

    epoch: int = 0
    samples: int = 0
    step: int = 0

    @property
    def checkpoint_name(self) -> str:
        whole = f"epoch-{self.epoch:04}"
        return whole if self.samples == 0 else f"{whole}-step-{self.step:06}"


def hyperparameters(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=32, help="samples per replica and step")
    parser.add_argument(
        "--learning_rate",
        type=float,
        default=0.02,
        help=f"for a global batch of {REFERENCE_BATCH}; scaled linearly with the global batch",
    )
    parser.add_argument("--warmup_epochs", type=float, default=1.0)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight_decay", type=float, default=1e-4)
    parser.add_argument("--clip_norm", type=float, default=1.0, help="longest gradient allowed")
    parser.add_argument("--channels", type=int, default=model.Config.channels)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--fail_at_epoch", type=int, default=0, help="for drills: raise an error in this epoch"
    )
    return container.parse(parser, arguments)


class Trainer:
    """One replica's share of the training."""

    def __init__(
        self, options: argparse.Namespace, replica: container.Replica, folders: container.Folders
    ) -> None:
        self.options = options
        self.replica = replica
        self.folders = folders
        self.stop = container.StopSignal()
        self.global_batch = options.batch_size * replica.world_size
        (pixels, labels), validation = digits.train_and_validation(folders.training)
        self.pixels, self.labels = pixels.to(replica.device), labels.to(replica.device)
        self.validation = [tensor.to(replica.device) for tensor in validation]
        # Pads the last round, so that all replicas take the same number of steps.
        self.sampler: DistributedSampler[int] = DistributedSampler(
            TensorDataset(pixels, labels), seed=options.seed
        )
        torch.manual_seed(options.seed)
        self.network = model.DigitsNet(model.Config(options.channels)).to(replica.device)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(),
            lr=options.learning_rate,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
        )
        self.progress = self._resume()
        self.parallel = DistributedDataParallel(self.network)

    def _resume(self) -> Progress:
        """Go on from the first replica's newest checkpoint: other hosts may lack it."""
        newest = checkpoints.newest(self.folders.checkpoints) if self.replica.is_first else None
        content = _from_first((newest / TRAINER_FILE).read_bytes() if newest else b"")
        if not content:
            return Progress()
        if newest:
            # DistributedDataParallel hands the first replica's weights to all.
            self.network.load_state_dict(model.load(newest).state_dict())
        saved = torch.load(io.BytesIO(content), weights_only=True)
        self.optimizer.load_state_dict(saved["optimizer"])
        progress = Progress(**saved["progress"])
        if self.replica.is_first:
            print(f"resumed from {newest}: epoch={progress.epoch} step={progress.step}", flush=True)
        return progress

    def run(self) -> bool:
        """Train to the last epoch; False if told to stop before."""
        while self.progress.epoch < self.options.epochs:
            if self.progress.epoch + 1 == self.options.fail_at_epoch:
                raise RuntimeError(
                    f"training failed on purpose in epoch {self.options.fail_at_epoch}, as "
                    "hyperparameter fail_at_epoch asks; checkpoints of the epochs before are whole"
                )
            if not self._train_epoch():
                return False
        self._finish()
        return True

    def _train_epoch(self) -> bool:
        losses: list[Tensor] = []
        for indices in self._batches():
            for group in self.optimizer.param_groups:
                group["lr"] = self._learning_rate()
            logits = self.parallel(self.pixels[indices])
            loss = nn.functional.cross_entropy(logits, self.labels[indices])
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            nn.utils.clip_grad_norm_(self.network.parameters(), self.options.clip_norm)
            self.optimizer.step()
            losses.append(loss.detach())
            self.progress = replace(
                self.progress,
                samples=self.progress.samples + self.global_batch,
                step=self.progress.step + 1,
            )
            if self.stop.agreed():
                self._save(losses)
                return False
        self.progress = replace(self.progress, epoch=self.progress.epoch + 1, samples=0)
        self._save(losses)
        return True

    def _batches(self) -> Iterator[list[int]]:
        """This replica's indices for the rest of the epoch, one list per step."""
        self.sampler.set_epoch(self.progress.epoch)
        order = list(self.sampler)
        done = self.progress.samples // self.replica.world_size
        for start in range(done, len(order), self.options.batch_size):
            yield order[start : start + self.options.batch_size]

    def _learning_rate(self) -> float:
        """Scaled by the global batch, warmed up linearly, then down along a half cosine."""
        options = self.options
        peak = float(options.learning_rate) * self.global_batch / REFERENCE_BATCH
        # Counted from the end of the coming step, so that the first one already moves.
        samples = self.progress.samples + self.global_batch
        epochs = self.progress.epoch + samples / len(self.labels)
        if epochs < options.warmup_epochs:
            return float(peak * epochs / options.warmup_epochs)
        cooled = (epochs - options.warmup_epochs) / max(options.epochs - options.warmup_epochs, 1)
        return float(peak * 0.5 * (1 + math.cos(math.pi * min(cooled, 0.95))))

    def _save(self, losses: Sequence[Tensor]) -> None:
        train_loss = torch.stack(list(losses)).mean()
        dist.all_reduce(train_loss)
        if self.replica.is_first:
            self._write_checkpoint(train_loss.item() / self.replica.world_size)
        dist.barrier()

    def _write_checkpoint(self, train_loss: float) -> None:
        validation = model.quality(self.network, self.validation[0], self.validation[1])
        metrics = {
            "epoch": self.progress.epoch,
            "step": self.progress.step,
            "train_loss": train_loss,
            "validation_accuracy": validation["accuracy"],
            "validation_loss": validation["loss"],
        }
        with checkpoints.writing(self.folders.checkpoints, self.progress.checkpoint_name) as folder:
            model.save(self.network, folder)
            state = {"optimizer": self.optimizer.state_dict(), "progress": asdict(self.progress)}
            torch.save(state, folder / TRAINER_FILE)
            (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
            (folder / "code").mkdir()
            for name in SERVING_CODE:
                shutil.copyfile(Path(__file__).with_name(name), folder / "code" / name)
        print(
            f"epoch={self.progress.epoch} step={self.progress.step} train:loss={train_loss:.6f} "
            f"validation:accuracy={validation['accuracy']:.6f} "
            f"validation:loss={validation['loss']:.6f}",
            flush=True,
        )

    def _finish(self) -> None:
        """The last checkpoint is the model, less what only training needs."""
        if self.replica.is_first:
            last = checkpoints.newest(self.folders.checkpoints)
            if last is None:
                raise RuntimeError(f"no checkpoint in {self.folders.checkpoints}: epochs >= 1")
            training_only = shutil.ignore_patterns(TRAINER_FILE, checkpoints.MANIFEST)
            shutil.copytree(last, self.folders.model, ignore=training_only, dirs_exist_ok=True)
            self.folders.output.mkdir(parents=True, exist_ok=True)
            summary = {
                **json.loads((last / "metrics.json").read_text()),
                "world_size": self.replica.world_size,
                "global_batch": self.global_batch,
                "hyperparameters": vars(self.options),
            }
            (self.folders.output / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        dist.barrier()


def _from_first(content: bytes) -> bytes:
    """The first replica's bytes, on every replica."""
    size = torch.tensor(len(content))
    dist.broadcast(size, src=0)
    data = torch.zeros(int(size.item()), dtype=torch.uint8)
    if content:
        data.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
    dist.broadcast(data, src=0)
    return bytes(data.tolist())


def main(arguments: Sequence[str] | None = None) -> int:
    options = hyperparameters(arguments)
    replica = container.join()
    try:
        finished = Trainer(options, replica, container.Folders.from_environment()).run()
    finally:
        dist.destroy_process_group()
    return 0 if finished else container.STOPPED


if __name__ == "__main__":
    sys.exit(main())
