"""The rows that several tests predict."""

from __future__ import annotations

from pathlib import Path

from orchestration.planning.calibration.rows import COLUMNS, Row

FILE = Path(__file__).parents[2] / "data/planner/benchmarks.csv"
UNSEEN = FILE.with_name("unseen.csv")
BLIND = FILE.with_name("blind.csv")


GOOD: Row = dict.fromkeys(COLUMNS, "") | {
    "id": "good", "framework": "PyTorch", "model": "m", "arch": "llama", "n_layers": "32",
    "hidden": "4096", "n_heads": "32", "n_kv_heads": "8", "ffn_hidden": "14336",
    "gated_mlp": "1", "vocab": "128256", "seq_len": "4096", "gpu": "h100",
    "gpu_mem_gib": "80", "n_gpus": "8", "gpus_per_node": "8", "precision": "bf16",
    "zero_stage": "3", "global_batch_seqs": "64", "micro_batch_seqs": "1",
    "flash_attn": "1",
}  # fmt: skip
