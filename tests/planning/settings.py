"""Configurations that several tests use."""

from __future__ import annotations

from orchestration.planning.model.configuration import Configuration, Machine
from orchestration.planning.model.shapes import ModelShape

GPT = ModelShape(
    layers=24, hidden=2048, heads=16, kv_heads=16, ffn=8192, gated=False, vocabulary=50304,
    tied_embeddings=True, rotary=False, positions=2048,
)  # fmt: skip
LLAMA = ModelShape(
    layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True, vocabulary=128256,
)  # fmt: skip


def machine(devices: int = 8, accelerator: str = "a100-80", **changes: object) -> Machine:
    """Return nodes of eight devices with the network of a p4de."""
    usual: dict[str, object] = {
        "devices_per_node": 8,
        "device_memory_gib": 80.0,
        "network_gbps": 400.0,
    }
    return Machine(accelerator=accelerator, devices=devices, **(usual | changes))  # type: ignore[arg-type]  # fields by name


def setting(model: ModelShape = LLAMA, **changes: object) -> Configuration:
    """Return FSDP of a Llama on one node."""
    usual: dict[str, object] = {
        "machine": machine(),
        "sequence": 4096,
        "global_batch": 64,
        "micro_batch": 1,
        "zero": 3,
    }
    return Configuration(model=model, **(usual | changes))  # type: ignore[arg-type]  # fields by name
