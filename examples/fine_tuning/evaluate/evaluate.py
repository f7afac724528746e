"""Measures the fine-tuned model on the texts that were held back; writes `evaluation.json`."""

from __future__ import annotations

import argparse
import json
import math
import tarfile
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from shared.texts import HELD_OUT, batches


@torch.inference_mode()
def loss(folder: str, lines: list[str], device: torch.device) -> float:
    """Return the mean loss of a model over batches of lines."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(folder).to(device, torch.float32).eval()
    losses = [
        model(**{name: tensor.to(device) for name, tensor in batch.items()}).loss.item()
        for batch in batches(lines, tokenizer, size=8, sequence=512)
    ]
    return sum(losses) / len(losses)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "data", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    lines = (options.data / HELD_OUT).read_text("utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.model / "model.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        held_out = loss(folder, lines, device)
    # Your code: further numbers go into `metrics`, where thresholds and bounds read them.
    report = {"metrics": {"loss": held_out, "perplexity": math.exp(held_out)}, "lines": len(lines)}
    (options.output / "evaluation.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
