"""Trains a byte-level language model on any number of hosts; SageMaker's torch_distributed runs it.

On GPUs the model is sharded (FSDP), on CPUs replicated (DDP). Made for spot instances: training
goes on from the newest whole checkpoint, with any number of replicas, and leaves one when told to
stop. Every checkpoint can be served as it is.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import launch
import parallel
import torch
import torch.distributed as dist
from torch import Tensor

from orchestration_runtime import (
    Checkpoints,
    Cluster,
    Folders,
    Schedule,
    StopSignal,
    cluster,
    global_batch,
    graceful_stop,
    reported_failures,
)
from shared import corpus, model

TRAINER_FILE = "trainer.pt"


def hyperparameters(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The defaults suit a few ml.p5.48xlarge: a gibitoken every 2,048 steps of 16 GPUs."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    for name in ("layers", "width", "heads", "context"):
        parser.add_argument(f"--{name}", type=int, default=getattr(model.Config, name))
    parser.add_argument("--batch_size", type=int, default=8, help="windows per replica and step")
    parser.add_argument("--max_steps", type=int, default=10_000)
    parser.add_argument("--learning_rate", type=float, default=3e-4, help="AdamW; not scaled")
    parser.add_argument("--warmup_steps", type=int, default=500)
    parser.add_argument("--weight_decay", type=float, default=0.1)
    parser.add_argument("--clip_norm", type=float, default=1.0, help="longest gradient allowed")
    parser.add_argument("--checkpoint_every", type=int, default=1000, help="steps")
    parser.add_argument("--log_every", type=int, default=10, help="steps")
    parser.add_argument("--validation_windows", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--activation_checkpointing",
        type=launch.flag,
        default=True,
        help="recompute activations on the way back: less memory, a third more computation",
    )
    parser.add_argument("--parallelism", choices=("auto", "fsdp", "ddp"), default="auto")
    return launch.parse(parser, arguments)


class Trainer:
    """One replica's share of the training."""

    def __init__(
        self, options: argparse.Namespace, here: Cluster, device: torch.device, stop: StopSignal
    ) -> None:
        self.options = options
        self.here = here
        self.device = device
        self.stop = stop
        self.folders = Folders.from_environment()
        self.checkpoints = Checkpoints(self.folders.checkpoints, prefix="step-", rank=here.rank)
        self.global_batch = global_batch(here.world_size, options.batch_size)
        self.learning_rate = self._schedule()
        window = options.context + 1
        self.texts, self.validation = corpus.train_and_validation(
            self.folders.channel("training"), window
        )
        # Shards are cut from each replica's own weights, so all must start from the same.
        torch.manual_seed(options.seed)
        self.config = model.Config(options.layers, options.width, options.heads, options.context)
        network = model.ByteTransformer(self.config, recompute=options.activation_checkpointing)
        self.network = parallel.wrap(network, here, device, options.parallelism)
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(),
            lr=options.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=options.weight_decay,
        )
        self.step = self._resume()

    def _resume(self) -> int:
        """The step of the first replica's newest checkpoint: other hosts may lack it."""
        newest = self.checkpoints.newest() if self.here.is_first else None
        weights: dict[str, Any] = {}
        state: dict[str, Any] = {}
        step = torch.tensor(0)
        if newest:
            saved = torch.load(newest.path / model.FILE, map_location="cpu", weights_only=True)
            trainer = torch.load(newest.path / TRAINER_FILE, map_location="cpu", weights_only=True)
            weights, state = saved["state_dict"], trainer["optimizer"]
            step.fill_(newest.number)
            print(f"resumed from {newest.path}: step={newest.number}", flush=True)
        dist.broadcast(step, src=0)
        if step.item():
            parallel.spread(self.network, self.optimizer, weights, state)
        return int(step.item())

    def run(self) -> bool:
        """Train to the last step; False if told to stop before."""
        since, logged = time.monotonic(), self.step
        while self.step < self.options.max_steps:
            loss = self._train_step()
            if self.stop.agreed(launch.any_replica):
                # No validation: it may outlast the time that is left.
                self._save({"train_loss": parallel.mean(loss)})
                return False
            if self._is_due(self.options.log_every):
                now = time.monotonic()
                speed = (
                    (self.step - logged) * self.global_batch * self.options.context / (now - since)
                )
                since, logged = now, self.step
                self._print({"train:loss": parallel.mean(loss), "tokens_per_second": speed})
            if self._is_due(self.options.checkpoint_every):
                metrics = {"train_loss": parallel.mean(loss), "validation_loss": self._validate()}
                self._save(metrics)
                self._print({"validation:loss": metrics["validation_loss"]})
        self._finish()
        return True

    def _is_due(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.options.max_steps

    def _print(self, values: dict[str, float]) -> None:
        if self.here.is_first:
            pairs = " ".join(f"{name}={value:.6f}" for name, value in values.items())
            print(f"step={self.step} {pairs}", flush=True)

    def _train_step(self) -> Tensor:
        windows = self.texts.batch(
            seed=self.options.seed,
            step=self.step,
            rank=self.here.rank,
            world_size=self.here.world_size,
            size=self.options.batch_size,
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.step)
        loss = model.next_byte_loss(self.network, windows.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.options.clip_norm)
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def _schedule(self) -> Schedule:
        """Warmed up linearly, then down to a tenth along a half cosine."""
        options = self.options
        return Schedule(
            peak=options.learning_rate,
            total_steps=options.max_steps,
            warmup_steps=min(options.warmup_steps, options.max_steps),
            floor=options.learning_rate / 10,
            decay="cosine",
        )

    def _validate(self) -> float:
        """Loss on evenly spread windows, an equal share on each replica: sharding needs that."""
        rounds: int = math.ceil(self.options.validation_windows / self.here.world_size)
        count = rounds * self.here.world_size
        starts = [index * len(self.validation) // count for index in range(count)]
        windows = self.validation.windows(starts[self.here.rank :: self.here.world_size])
        self.network.eval()
        with torch.no_grad():
            losses = [
                model.next_byte_loss(self.network, batch.to(self.device)) * len(batch)
                for batch in torch.split(windows, self.options.batch_size)
            ]
        self.network.train()
        return parallel.mean(torch.stack(losses).sum()) / rounds

    def _save(self, metrics: dict[str, float]) -> None:
        weights, state = parallel.gather(self.network, self.optimizer)

        def write(folder: Path) -> None:
            model.save(self.config, weights, folder)
            torch.save({"optimizer": state}, folder / TRAINER_FILE)
            here, code = Path(__file__).parent, folder / "code"
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(here / "shared", code / "shared", ignore=ignored)
            shutil.copyfile(here / "inference.py", code / "inference.py")

        self.checkpoints.save(self.step, write, metrics)
        dist.barrier()

    def _finish(self) -> None:
        """The last checkpoint is the model, less what only training needs."""
        last = self.checkpoints.newest() if self.here.is_first else None
        if last:
            last.copy_to(self.folders.model, without=[TRAINER_FILE])
            self.folders.output.mkdir(parents=True, exist_ok=True)
            summary = {
                "step": last.number,
                **last.metrics,
                "world_size": self.here.world_size,
                "global_batch": self.global_batch,
                "parameters": sum(parameter.numel() for parameter in self.network.parameters()),
                "hyperparameters": vars(self.options),
            }
            (self.folders.output / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        dist.barrier()


@reported_failures()
def main(arguments: Sequence[str] | None = None) -> None:
    options = hyperparameters(arguments)
    here = cluster()
    with launch.process_group(here) as device, graceful_stop() as stop:
        if Trainer(options, here, device, stop).run():
            stop.complete()


if __name__ == "__main__":
    main()
