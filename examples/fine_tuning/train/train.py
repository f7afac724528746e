"""Fine-tunes a causal language model with FSDP, and writes it as `save_pretrained()` does."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM, AutoTokenizer

from orchestration_runtime import cluster, reported_failures
from shared.texts import HELD_OUT, batches, to_train_on


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    # Your code: a hyperparameter of the pipeline is an option here.
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--sequence", type=int, default=512)
    return parser.parse_known_args()[0]


def shard(model: Any, device: torch.device, world: int) -> Any:
    """Shard each block by itself, and what is around them."""
    mesh = init_device_mesh(device.type, (world,))
    for block in model.model.layers:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def loss_of(model: nn.Module, batch: dict[str, Tensor], device: torch.device) -> Tensor:
    return model(**{name: tensor.to(device) for name, tensor in batch.items()}).loss


def main() -> None:
    given, here = options(), cluster()
    channels = {name: Path(os.environ[f"SM_CHANNEL_{name.upper()}"]) for name in ("model", "texts")}
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", here.local_rank) if on_gpu else torch.device("cpu")
    torch.set_num_threads(1) if not on_gpu else torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    tokenizer = AutoTokenizer.from_pretrained(channels["model"])
    tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(channels["model"]).to(device, torch.float32)
    model = shard(model, device, here.world_size)
    # Your code: another optimizer, a schedule, weights of LoRA in the place of all.
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.learning_rate)
    lines = to_train_on(channels["texts"])
    # Every process has as many batches as the others: FSDP meets in each.
    share = len(lines) // here.world_size
    mine = lines[here.rank * share : (here.rank + 1) * share]
    if not mine:
        sys.exit(f"there are {len(lines)} texts for {here.world_size} processes")
    loss = torch.zeros(())
    for epoch in range(given.epochs):
        for batch in batches(mine, tokenizer, given.batch_size, given.sequence):
            loss = loss_of(model, batch, device)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if here.rank == 0:
            print(f"epoch={epoch} train:loss={loss.item():.4f}", flush=True)
    evaluate(model, tokenizer, channels["texts"] / HELD_OUT, given, device)
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=whole)
    if here.rank == 0:
        model.save_pretrained(os.environ["SM_MODEL_DIR"], state_dict=weights)
        tokenizer.save_pretrained(os.environ["SM_MODEL_DIR"])
        code = Path(os.environ["SM_MODEL_DIR"], "code")
        code.mkdir()
        shutil.copy(Path(__file__).with_name("inference.py"), code)
    dist.destroy_process_group()


@torch.no_grad()
def evaluate(
    model: nn.Module, tokenizer: Any, path: Path, given: argparse.Namespace, device: torch.device
) -> None:
    """Print the loss on what was held back; all processes compute it, and one tells."""
    lines = path.read_text().splitlines()
    losses = [
        loss_of(model, batch, device).item()
        for batch in batches(lines, tokenizer, given.batch_size, given.sequence)
    ]
    loss = sum(losses) / len(losses)
    if dist.get_rank() == 0:
        print(f"eval:loss={loss:.4f} perplexity={math.exp(loss):.2f}", flush=True)


if __name__ == "__main__":
    with reported_failures():
        main()
