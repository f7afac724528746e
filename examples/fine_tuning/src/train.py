"""Fine-tunes a causal language model with FSDP, and writes it as `save_pretrained()` does."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM, AutoTokenizer

from orchestration_runtime import cluster, reported_failures

HELD_OUT = "held-out.txt"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--sequence", type=int, default=512)
    return parser.parse_known_args()[0]


def batches(lines: list[str], tokenizer, size: int, sequence: int) -> Iterator[dict[str, Tensor]]:
    """Yield lines as tokens, padded at their ends, which no loss counts."""
    for start in range(0, len(lines), size):
        tokens = tokenizer(
            [line + tokenizer.eos_token for line in lines[start : start + size]],
            padding=True,
            truncation=True,
            max_length=sequence,
            return_tensors="pt",
        )
        labels = tokens.input_ids.masked_fill(tokens.attention_mask == 0, -100)
        attention = tokens.attention_mask
        yield {"input_ids": tokens.input_ids, "attention_mask": attention, "labels": labels}


def shard(model: nn.Module, device: torch.device, world: int) -> nn.Module:
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
    model = AutoModelForCausalLM.from_pretrained(channels["model"], dtype=torch.float32).to(device)
    model = shard(model, device, here.world_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.learning_rate)
    files = sorted(path for path in channels["texts"].glob("*.txt") if path.name != HELD_OUT)
    lines = [line for path in files for line in path.read_text().splitlines()]
    # Every process has as many batches as the others: FSDP meets in each.
    share = len(lines) // here.world_size
    mine = lines[here.rank * share : (here.rank + 1) * share]
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
    dist.destroy_process_group()


@torch.no_grad()
def evaluate(model, tokenizer, path: Path, given: argparse.Namespace, device) -> None:
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
