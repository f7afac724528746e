"""Trains a digits classifier on any number of hosts; SageMaker's torch_distributed runs it.

Each epoch leaves a servable checkpoint, and so does a stop before its end. Training goes on from
the newest one, with any number of replicas: the learning rate and the order of the samples follow
the global batch alone.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import launch
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler, TensorDataset

from orchestration_runtime import (
    Checkpoint,
    Checkpoints,
    Cluster,
    Folders,
    Schedule,
    StopSignal,
    cluster,
    global_batch,
    graceful_stop,
    iterations_per_epoch,
    reported_failures,
    scaled_linearly,
)
from shared import digits, model

REFERENCE_BATCH = 64
TRAINER_FILE = "trainer.pt"


@dataclass(frozen=True)
class Progress:
    """How far training is: whole epochs, then samples and steps since."""

    epoch: int = 0
    samples: int = 0
    step: int = 0


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
    return launch.parse(parser, arguments)


class Trainer:
    """One replica's share of the training."""

    def __init__(
        self, options: argparse.Namespace, here: Cluster, device: torch.device, stop: StopSignal
    ) -> None:
        self.options = options
        self.here = here
        self.stop = stop
        self.folders = Folders.from_environment()
        self.epochs = Checkpoints(
            self.folders.checkpoints, prefix="epoch-", counts="epoch", rank=here.rank
        )
        # Another prefix: the pipeline chooses the best among whole epochs.
        self.cut_off = Checkpoints(
            self.folders.checkpoints, prefix="stopped-", rank=here.rank, keep_last=1
        )
        self.global_batch = global_batch(here.world_size, options.batch_size)
        (pixels, labels), validation = digits.train_and_validation(self.folders.channel("training"))
        self.pixels, self.labels = pixels.to(device), labels.to(device)
        self.validation = [tensor.to(device) for tensor in validation]
        # Pads the last round, so that all replicas take the same number of steps.
        self.sampler: DistributedSampler[int] = DistributedSampler(
            TensorDataset(pixels, labels), seed=options.seed
        )
        torch.manual_seed(options.seed)
        self.network = model.DigitsNet(model.Config(options.channels)).to(device)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(),
            lr=options.learning_rate,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
        )
        self.steps_per_epoch = iterations_per_epoch(len(labels), self.global_batch, drop_last=False)
        self.learning_rate = self._schedule()
        self.progress = self._resume()
        self.parallel = DistributedDataParallel(self.network)

    def _resume(self) -> Progress:
        """Go on from the first replica's newest checkpoint: other hosts may lack it."""
        newest = self._newest() if self.here.is_first else None
        content = _from_first((newest.path / TRAINER_FILE).read_bytes() if newest else b"")
        if not content:
            return Progress()
        if newest:
            # DistributedDataParallel hands the first replica's weights to all.
            self.network.load_state_dict(model.load(newest.path).state_dict())
        saved = torch.load(io.BytesIO(content), weights_only=True)
        self.optimizer.load_state_dict(saved["optimizer"])
        progress = Progress(**saved["progress"])
        if newest:
            where = f"epoch={progress.epoch} step={progress.step}"
            print(f"resumed from {newest.path}: {where}", flush=True)
        return progress

    def _newest(self) -> Checkpoint | None:
        """The last whole epoch, or what a stop left since."""
        epoch, stopped = self.epochs.newest(), self.cut_off.newest()
        if epoch and stopped:
            return stopped if stopped.number > epoch.metrics["step"] else epoch
        return epoch or stopped

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
        stopped = False
        for indices in self._batches():
            losses.append(self._train_step(indices))
            stopped = self.stop.agreed(launch.any_replica)
            if stopped:
                break
        if self.progress.samples < len(self.labels):
            self._save(self.cut_off, self.progress.step, losses)
        else:
            self.progress = replace(self.progress, epoch=self.progress.epoch + 1, samples=0)
            self._save(self.epochs, self.progress.epoch, losses)
        return not stopped

    def _train_step(self, indices: list[int]) -> Tensor:
        step = (
            self.progress.epoch * self.steps_per_epoch + self.progress.samples // self.global_batch
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(step)
        logits = self.parallel(self.pixels[indices])
        loss = nn.functional.cross_entropy(logits, self.labels[indices])
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        nn.utils.clip_grad_norm_(self.network.parameters(), self.options.clip_norm)
        self.optimizer.step()
        self.progress = replace(
            self.progress,
            samples=self.progress.samples + self.global_batch,
            step=self.progress.step + 1,
        )
        return loss.detach()

    def _batches(self) -> Iterator[list[int]]:
        """This replica's indices for the rest of the epoch, one list per step."""
        self.sampler.set_epoch(self.progress.epoch)
        order = list(self.sampler)
        done = self.progress.samples // self.here.world_size
        for start in range(done, len(order), self.options.batch_size):
            yield order[start : start + self.options.batch_size]

    def _schedule(self) -> Schedule:
        """Warmed up linearly, then down along a half cosine; in steps of this global batch."""
        options = self.options
        total_steps = options.epochs * self.steps_per_epoch
        warmup_steps = round(options.warmup_epochs * self.steps_per_epoch)
        return Schedule(
            peak=scaled_linearly(options.learning_rate, REFERENCE_BATCH, self.global_batch),
            total_steps=total_steps,
            warmup_steps=min(warmup_steps, total_steps),
            decay="cosine",
        )

    def _save(self, checkpoints: Checkpoints, number: int, losses: Sequence[Tensor]) -> None:
        train_loss = torch.stack(list(losses)).mean()
        dist.all_reduce(train_loss)
        if self.here.is_first:
            validation = model.quality(self.network, self.validation[0], self.validation[1])
            metrics = {
                "epoch": self.progress.epoch,
                "step": self.progress.step,
                "train_loss": train_loss.item() / self.here.world_size,
                "validation_accuracy": validation["accuracy"],
                "validation_loss": validation["loss"],
            }
            checkpoints.save(number, self._write, metrics)
            self._print(metrics)
        dist.barrier()

    def _write(self, folder: Path) -> None:
        model.save(self.network, folder)
        state = {"optimizer": self.optimizer.state_dict(), "progress": asdict(self.progress)}
        torch.save(state, folder / TRAINER_FILE)
        here, code = Path(__file__).parent, folder / "code"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here / "shared", code / "shared", ignore=ignored)
        shutil.copyfile(here / "inference.py", code / "inference.py")

    def _print(self, metrics: dict[str, float]) -> None:
        print(
            f"epoch={self.progress.epoch} step={self.progress.step} "
            f"train:loss={metrics['train_loss']:.6f} "
            f"validation:accuracy={metrics['validation_accuracy']:.6f} "
            f"validation:loss={metrics['validation_loss']:.6f}",
            flush=True,
        )

    def _finish(self) -> None:
        """The last checkpoint is the model, less what only training needs."""
        last = self.epochs.newest() if self.here.is_first else None
        if last:
            last.copy_to(self.folders.model, without=[TRAINER_FILE])
            self.folders.output.mkdir(parents=True, exist_ok=True)
            summary = {
                "epoch": last.number,
                **last.metrics,
                "world_size": self.here.world_size,
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


@reported_failures()
def main(arguments: Sequence[str] | None = None) -> None:
    options = hyperparameters(arguments)
    here = cluster()
    with launch.process_group(here) as device, graceful_stop() as stop:
        if Trainer(options, here, device, stop).run():
            stop.complete()


if __name__ == "__main__":
    main()
