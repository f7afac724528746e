"""Measure memory and step time of training on one GPU, as rows of tests/data/planner/measured.csv.

    python tools/planning/measure_memory.py OUT.csv --gpu KEY [--rows FILE.csv] [--only TEXT]

Each row of `--rows` (measured.csv, or your own with its columns) says which model is trained and
how; OUT.csv gets these rows with what your GPU needs. `--gpu` is its key in
orchestration/planning/cost/devices.csv, `--only` a part of the ids of rows.

Models have random weights, made by Hugging Face's transformers with the row's sizes, and train for
five steps: by a plain loop, by the Trainer (where `notes` name it), or with `fully_shard` over one
rank (`framework` torchtitan). Memory is `torch.cuda.max_memory_allocated` less what was allocated
before; the step time is the median of the last three steps.

The rows of measured.csv were measured so on 2026-11-27, on one NVIDIA H100 80GB HBM3 (driver 580,
CUDA 13.0) with PyTorch 2.11.0 and transformers 5.17.0, by two scripts that this one replaces. It
needs both and a CUDA device, for adapters peft, for the Trainer accelerate, for weights and states
of few bits bitsandbytes, and this package. Nothing imports this file.
"""

from __future__ import annotations

import argparse
import csv
import gc
import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from orchestration.planning.calibration.rows import COLUMNS, Row, complete, configuration
from orchestration.planning.model.shapes import ModelShape

MEASURED = Path(__file__).resolve().parents[2] / "tests/data/planner/measured.csv"
GIB = 2**30
STEPS = 5
READINGS = ("step_time_s", "mem_gib_per_gpu", "mem_kind", "oom")
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
NETWORK = ["gate_proj", "up_proj", "down_proj"]


def needed(name: str) -> Any:
    """Import a package that only this script needs."""
    try:
        return import_module(name)
    except ImportError as error:
        sys.exit(f"measure_memory.py needs {name.partition('.')[0]} ({error}); install it with pip")


@dataclass(frozen=True)
class Way:
    """A row, in the terms of the libraries."""

    row: Row
    shape: ModelShape
    rank: int
    """Rank of the adapters; 0: all weights are trained."""
    bits: bool
    """Weights are packed in four bits."""
    narrow: bool
    """Weights are in 16 bits, before they are packed."""
    casts: bool
    """Products are cast by autocast."""
    attention: str
    recomputes: bool
    sharded: bool

    @classmethod
    def of(cls, row: Row) -> Way:
        c, precision = configuration(row), row["precision"]
        each = c.model.lora_parameters(1, c.adapter_targets)
        bits, sharded = precision.startswith("nf4"), row["framework"] == "torchtitan"
        return cls(
            row=row, shape=c.model, rank=round((c.trainable or 0) / each), bits=bits,
            narrow=bits or precision == "bf16_true", sharded=sharded,
            casts=bits or (precision == "bf16" and not sharded),
            attention="sdpa" if row["flash_attn"] != "0" or precision == "fp32" else "eager",
            recomputes=row["act_ckpt"] == "full",
        )  # fmt: skip

    def number(self, column: str) -> int:
        return int(self.row[column])


def built(torch: Any, way: Way) -> Any:
    """Return the row's model on the device, with random weights."""
    kind, config = _architecture(needed("transformers"), way)
    config.use_cache = False
    config._attn_implementation = way.attention
    torch.set_default_dtype(torch.bfloat16 if way.narrow else torch.float32)
    try:
        with torch.device("cuda"):
            return kind(config)
    finally:
        torch.set_default_dtype(torch.float32)


def _architecture(hf: Any, way: Way) -> tuple[Any, Any]:
    """Return the class of the row's model, and its configuration."""
    s, arch = way.shape, way.row["arch"]
    sizes = {"hidden_size": s.hidden, "intermediate_size": s.ffn}
    sizes |= {"num_hidden_layers": s.layers, "num_attention_heads": s.heads}
    words = {"vocab_size": s.vocabulary, "tie_word_embeddings": s.tied_embeddings}
    keys, length = {"num_key_value_heads": s.kv_heads}, way.number("seq_len")
    if arch == "gpt":
        names = {"n_embd": s.hidden, "n_layer": s.layers, "n_head": s.heads, "n_inner": s.ffn}
        return hf.GPT2LMHeadModel, hf.GPT2Config(**names, **words, n_positions=length)
    if arch == "bert":
        return hf.BertForMaskedLM, hf.BertConfig(**sizes, **words, max_position_embeddings=length)
    if arch == "vit":
        return hf.ViTForImageClassification, hf.ViTConfig(**sizes, num_labels=way.number("vocab"))
    if arch == "moe":
        experts = {"num_local_experts": s.experts, "num_experts_per_tok": s.routed_experts}
        return hf.MixtralForCausalLM, hf.MixtralConfig(**sizes, **words, **keys, **experts)
    if arch not in ("llama", "lora"):
        sys.exit(f"{way.row['id']}: no model is known for arch {arch!r}")
    positions = {"max_position_embeddings": max(2048, length)}
    return hf.LlamaForCausalLM, hf.LlamaConfig(**sizes, **words, **keys, **positions)


def pack(torch: Any, model: Any) -> None:
    """Pack the layers' matrices in four bits, as transformers does."""
    bnb = needed("bitsandbytes")
    few = {"quant_type": "nf4", "compress_statistics": True}
    for name, child in list(model.named_modules()):
        if not isinstance(child, torch.nn.Linear) or "lm_head" in name:
            continue
        kept = {"compute_dtype": torch.bfloat16, "bias": False, "device": "meta"}
        packed = bnb.nn.Linear4bit(child.in_features, child.out_features, **kept, **few)
        weight = child.weight.data
        packed.weight = bnb.nn.Params4bit(weight, requires_grad=False, module=packed, **few)
        parent, _, field = name.rpartition(".")
        setattr(model.get_submodule(parent), field, packed.to("cuda"))


def prepared(torch: Any, way: Way) -> Any:
    """Return the model with the row's adapters, recomputation and sharding."""
    model = built(torch, way)
    if way.bits:
        pack(torch, model)
    if way.rank:
        peft = needed("peft")
        if way.bits:
            model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        names = ATTENTION + (NETWORK if way.row["adapter_targets"] == "all" else [])
        lora = peft.LoraConfig(
            r=way.rank, lora_alpha=16, target_modules=names, lora_dropout=0.0, task_type="CAUSAL_LM"
        )
        model = peft.get_peft_model(model, lora, autocast_adapter_dtype=way.bits)
        model.enable_input_require_grads()
    if way.recomputes:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if way.sharded:
        fsdp = needed("torch.distributed.fsdp")
        policy = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for part in (*model.model.layers, model):
            fsdp.fully_shard(part, mp_policy=policy)
    model.train()
    return model


def batch(torch: Any, way: Way, samples: int) -> dict[str, Any]:
    """Return random samples on the device."""
    words = way.number("vocab")
    if way.row["arch"] == "vit":
        pixels = torch.randn(samples, 3, 224, 224, device="cuda")
        return {"pixel_values": pixels, "labels": torch.randint(words, (samples,), device="cuda")}
    ids = torch.randint(words, (samples, way.number("seq_len")), device="cuda")
    return {"input_ids": ids, "labels": ids.clone()}


def now(torch: Any) -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def loop(torch: Any, way: Way, model: Any) -> list[float]:
    """Train by a plain loop; return the seconds of each step."""
    trained = [each for each in model.parameters() if each.requires_grad]
    if "8bit" in way.row["optimizer"]:
        optimizer = needed("bitsandbytes").optim.AdamW8bit(trained, lr=1e-5)
    else:
        how = "foreach" if "foreach" in way.row["notes"] else "fused"
        optimizer = torch.optim.AdamW(trained, lr=1e-5, **{how: True})
    times = []
    for _ in range(STEPS):
        inputs = batch(torch, way, way.number("micro_batch_seqs"))
        begin = now(torch)
        for _ in range(way.number("grad_accum")):
            with torch.autocast("cuda", torch.bfloat16) if way.casts else nullcontext():
                loss = model(**inputs).loss / way.number("grad_accum")
            loss.backward()
            del loss
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(now(torch) - begin)
    return times


def trainer(torch: Any, way: Way, model: Any) -> list[float]:
    """Train by transformers' Trainer; return the seconds of each step."""
    hf, times = needed("transformers"), list[float]()

    def begin(*_: object, **__: object) -> None:
        times.append(now(torch))

    def end(*_: object, **__: object) -> None:
        times[-1] = now(torch) - times[-1]

    clock = type("Clock", (hf.TrainerCallback,), {"on_step_begin": begin, "on_step_end": end})
    micro, accumulated = way.number("micro_batch_seqs"), way.number("grad_accum")
    count = STEPS * micro * accumulated
    samples = [{k: v[0].cpu() for k, v in batch(torch, way, 1).items()} for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = hf.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=micro, max_steps=STEPS, report_to=[],
            gradient_accumulation_steps=accumulated, bf16=way.row["precision"] == "bf16",
            optim="adamw_torch_fused", save_strategy="no", logging_strategy="no", disable_tqdm=True,
            gradient_checkpointing=way.recomputes, dataloader_num_workers=0,
            gradient_checkpointing_kwargs={"use_reentrant": False} if way.recomputes else None,
        )  # fmt: skip
        how = {"args": arguments, "train_dataset": samples, "callbacks": [clock()]}
        hf.Trainer(model=model, **how).train()
    return times


def free(torch: Any) -> None:
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def reading(torch: Any, way: Way) -> dict[str, str]:
    """Return the cells that say what a training took."""
    free(torch)
    before = torch.cuda.memory_allocated()
    try:
        model = prepared(torch, way)
        free(torch)
        train = trainer if "Trainer" in way.row["notes"] else loop
        times = train(torch, way, model)
    except torch.OutOfMemoryError:
        return dict(zip(READINGS, ("", "", "", "1"), strict=True))
    gib = (torch.cuda.max_memory_allocated() - before) / GIB
    step = f"{statistics.median(times[2:]):.4g}"
    return dict(zip(READINGS, (step, f"{gib:.2f}", "peak allocated", "0"), strict=True))


def measured(torch: Any, asked: argparse.Namespace) -> None:
    """Write the rows with their readings, one after the other."""
    versions = f"PyTorch {torch.__version__}, transformers {needed('transformers').__version__}"
    device = f"one {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, {versions}"
    gib = f"{torch.cuda.mem_get_info()[1] / GIB:.1f}"
    own = {"table": device, "date": f"{date.today()}", "gpu": asked.gpu, "gpu_mem_gib": gib}
    with asked.rows.open(newline="") as file:
        rows = [complete(row) for row in csv.DictReader(file) if asked.only in row["id"]]
    with asked.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            found = {**row, **own, **reading(torch, Way.of(row))}
            writer.writerow(found)
            file.flush()
            said = "out of memory" if found["oom"] == "1" else f"{found['mem_gib_per_gpu']} GiB"
            print(f"{row['id']} {row['model']}: {said}, {found['step_time_s']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--gpu", required=True, help="its key in devices.csv, for example h100")
    parser.add_argument("--rows", type=Path, default=MEASURED, help="what to measure")
    parser.add_argument("--only", default="", help="part of the ids of the rows to measure")
    asked = parser.parse_args()
    torch = needed("torch")
    if not torch.cuda.is_available():
        sys.exit(
            f"measure_memory.py needs a GPU, but PyTorch {torch.__version__} finds no CUDA device: "
            "use a machine with one, and a PyTorch that was built for CUDA"
        )
    torch.manual_seed(0)
    here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "RANK": "0", "WORLD_SIZE": "1"}
    os.environ.update(here, LOCAL_RANK="0")
    torch.distributed.init_process_group("nccl")
    measured(torch, asked)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
