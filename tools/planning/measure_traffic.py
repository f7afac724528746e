"""Measure what single operators move in a GPU's memory, and its matrix products.

    python tools/planning/measure_traffic.py FOLDER

FOLDER gets traffic.csv and products.csv, as in tests/data/planner. A row of traffic.csv says how
many bytes per element a copy of a large array moves in the time of the operators, forward and
backward; the shape is that of the elements. It is what `orchestration.planning.cost.traffic` counts
with. Products are `rows x inner` times `inner x outer` of 16 bits, in microseconds, each with those
of its two gradients, as layers of eight sizes take them with one to eight ranks, and some output
layers whose words are no multiple of 8.

The rows in tests/data/planner were measured so on 2026-11-27, on one NVIDIA H100 80GB HBM3 with
PyTorch 2.11.0 (CUDA 13.0). It needs PyTorch and a CUDA device; nothing imports this file.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

torch: Any = None  # imported by `main`, as not every environment has it
LAYERS = (
    (1024, 4096), (2048, 5632), (4096, 11008), (4096, 14336),
    (5120, 13824), (6656, 17920), (8192, 22016), (8192, 28672),
)  # fmt: skip
TOKENS = ((2048, 8192), (8192, 5120), (8192, 8192))
SCORES = ((1, 40, 2048), (1, 10, 8192), (4, 10, 2048))
SHORT_SCORES = ((64, 16, 264), (200, 16, 128), (32, 16, 512))
LOGITS = ((2048, 50304), (2048, 128256), (8192, 128256))
PACKED = ((4096, 12288), (11008, 4096), (8192, 24576))
ODD = ((25600, 1024, 50265), (16384, 1024, 50265), (8192, 4096, 50257), (4096, 768, 50257))

Operators = Callable[[], Any]


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit("measure_traffic.py needs the folder to write to")
    global torch
    try:
        torch = import_module("torch")
    except ImportError as error:
        sys.exit(f"measure_traffic.py needs torch ({error}); install it with pip")
    if not torch.cuda.is_available():
        sys.exit(
            f"measure_traffic.py needs a GPU, but PyTorch {torch.__version__} finds no CUDA device"
        )
    folder = Path(sys.argv[1])
    rate = copied_bytes_per_s()
    write(
        folder / "traffic.csv",
        ("operators", "shape", "forward_bytes", "backward_bytes"),
        (
            (name, "x".join(map(str, shape)), f"{forward * rate:.1f}", f"{backward * rate:.1f}")
            for name, shape, forward, backward in traffic()
        ),
    )
    write(
        folder / "products.csv",
        ("rows", "inner", "outer", "forward_us", "input_gradient_us", "weight_gradient_us"),
        products(),
    )
    return 0


def write(path: Path, head: Sequence[str], rows: Iterator[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def seconds(run: Operators) -> float:
    """Return the median seconds of one run, of three times as many as take 50 ms."""
    run()
    once = _timed(run, 3) / 3
    times = max(3, min(200, int(0.05 / once)))
    return statistics.median(_timed(run, times) / times for _ in range(3))


def _timed(run: Operators, times: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3


def copied_bytes_per_s() -> float:
    source = torch.empty(1 << 29, dtype=torch.bfloat16, device="cuda")
    target = torch.empty_like(source)
    return float(4 * source.numel() / seconds(lambda: target.copy_(source)))


def traffic() -> Iterator[tuple[str, tuple[int, ...], float, float]]:
    """Yield operators, their shape, and seconds per element, forward and backward."""
    for shape in TOKENS:
        for name, run, inputs in [*_norms(*shape), *_others(*shape)]:
            yield name, shape, *_both(run, inputs, shape)
    for batch, heads, length in SCORES:
        scores = batch, heads, length, length
        for name, run, inputs in _softmax(batch, heads, length):
            yield name, scores, *_both(run, inputs, scores)
    for batch, heads, length in SHORT_SCORES:
        scores = batch, heads, length, length
        x = _array(*scores)
        cast = partial(_cast_softmax, x)
        yield "softmax_cast", scores, *_both(cast, (x,), scores)
    for tokens, words in LOGITS:
        for name, run, inputs in _losses(tokens, words):
            yield name, (tokens, words), *_both(run, inputs, (tokens, words))
    wide = 16896, 6144
    for name, run, inputs in _activations(*wide):
        yield name, wide, *_both(run, inputs, wide)
    yield from _without_gradients()


def _without_gradients() -> Iterator[tuple[str, tuple[int, ...], float, float]]:
    """Yield what has no backward pass: unpacking matrices, and updating parameters."""
    for inner, outer in PACKED:
        unpacking = seconds(_unpacking(inner, outer))
        yield "unpacking_4_bits", (inner, outer), unpacking / inner / outer, 0.0
    for name, kernels in (
        ("update_fused", {"fused": True}), ("update_foreach", {"foreach": True}),
        ("update_one_by_one", {"foreach": False}),
    ):  # fmt: skip
        weights = _array(1 << 28, dtype=torch.float32)
        weights.grad = torch.randn_like(weights)
        updating = seconds(torch.optim.AdamW([weights], **kernels).step)
        yield name, (1 << 28,), updating / weights.numel(), 0.0


def _both(run: Operators, inputs: Sequence[Any], shape: Sequence[int]) -> tuple[float, float]:
    elements = 1
    for length in shape:
        elements *= length
    gradient = torch.randn_like(run())
    forward = seconds(run)
    both = seconds(lambda: torch.autograd.grad(run(), inputs, gradient))
    return forward / elements, (both - forward) / elements


def _array(*shape: int, dtype: Any = None) -> Any:
    return torch.randn(*shape, device="cuda", dtype=dtype or torch.bfloat16, requires_grad=True)


Cases = list[tuple[str, Operators, tuple[Any, ...]]]


def _norms(tokens: int, width: int) -> Cases:
    functional = torch.nn.functional
    x, weight = _array(1, tokens, width), _array(width)
    wide, wide_weight = (each.detach().float().requires_grad_() for each in (x, weight))

    def llama(x: Any, weight: Any) -> Any:
        values = x.to(torch.float32)
        square = values.pow(2).mean(-1, keepdim=True)
        return weight * (values * torch.rsqrt(square + 1e-6)).to(x.dtype)

    def layer(x: Any, weight: Any) -> Any:
        return functional.layer_norm(x, (width,), weight, weight)

    return [
        ("llama_norm", lambda: llama(x, weight), (x, weight)),
        ("llama_norm_of_fp32", lambda: llama(wide, wide_weight), (wide, wide_weight)),
        ("layer_norm_of_fp32", lambda: layer(wide, wide_weight), (wide, wide_weight)),
        ("fused_norm", lambda: layer(x, weight), (x, weight)),
        ("fused_norm", lambda: functional.rms_norm(x, (width,), weight, 1e-6), (x, weight)),
    ]


def _others(tokens: int, width: int) -> Cases:
    functional = torch.nn.functional
    x, y = _array(1, tokens, width), _array(1, tokens, width)
    query = _array(1, tokens, width // 128, 128)
    cosine = _array(1, tokens, 1, 128, dtype=torch.float32).detach()
    narrow = cosine.to(torch.bfloat16)

    def turned(x: Any, cosine: Any) -> Any:
        first, second = x[..., :64], x[..., 64:]
        return x * cosine + torch.cat((-second, first), -1) * cosine

    return [
        ("sum", lambda: x + y, (x, y)),
        ("gating", lambda: functional.silu(x) * y, (x, y)),
        ("dropout", lambda: functional.dropout(x, 0.1), (x,)),
        (
            "rotary",
            lambda: turned(query.transpose(1, 2), narrow.transpose(1, 2)),
            (query,),
        ),
        ("rotary_of_fp32", lambda: turned(query.float(), cosine).to(query.dtype), (query,)),
    ]


def _softmax(batch: int, heads: int, length: int) -> Cases:
    scores = _array(batch, heads, length, length)
    hidden = ~torch.tril(torch.ones(1, 1, length, length, dtype=torch.bool, device="cuda"))
    added = torch.zeros_like(hidden, dtype=torch.bfloat16).masked_fill(hidden, -1e9)

    def masked() -> Any:
        return torch.softmax(scores.clone().masked_fill_(hidden, -10000.0), -1)

    def wide() -> Any:
        return torch.softmax(scores * 0.088 + added, -1, dtype=torch.float32).to(scores.dtype)

    return [
        ("softmax_masked", masked, (scores,)),
        ("softmax_wide", wide, (scores,)),
        ("softmax_operators", lambda: torch.softmax(scores * 0.088 + added, -1), (scores,)),
        ("dropout", lambda: torch.nn.functional.dropout(scores, 0.1), (scores,)),
    ]


def _cast_softmax(scores: Any) -> Any:
    return torch.softmax(scores.float() * 0.088, -1).to(scores.dtype)


def _activations(tokens: int, width: int) -> Cases:
    gelu = torch.nn.functional.gelu
    x, bias = _array(tokens, width), _array(width)

    def by_tanh() -> Any:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1 + torch.tanh(inner))

    return [
        ("gelu_kernel", lambda: gelu(x), (x,)),
        ("gelu_biased", lambda: gelu(x + bias), (x, bias)),
        ("gelu_tanh", by_tanh, (x,)),
    ]


def _unpacking(inner: int, outer: int) -> Operators:
    """Return what turns a matrix of 4 bits in groups of 128 into 16 bits, operator by operator."""
    packed, zeros = (
        torch.randint(0, 1 << 30, shape, dtype=torch.int32, device="cuda")
        for shape in ((inner // 8, outer), (inner // 128, outer // 8))
    )
    scales = torch.rand(inner // 128, 1, outer, dtype=torch.float16, device="cuda")
    shifts = torch.arange(0, 32, 4, dtype=torch.int32, device="cuda")

    def run() -> Any:
        nulls = (zeros.unsqueeze(2) >> shifts).to(torch.int8) & 15
        values = (packed.unsqueeze(1) >> shifts.unsqueeze(-1)).to(torch.int8) & 15
        return scales * (values.reshape(-1, 128, outer) - (nulls + 1).reshape(-1, 1, outer))

    return run


def _losses(tokens: int, words: int) -> Cases:
    logits = _array(tokens, words)
    target = torch.randint(0, words, (tokens,), device="cuda")
    loss = torch.nn.functional.cross_entropy

    def with_accuracy() -> Any:
        values = logits.float()
        hits = (values.argmax(-1) == target).float().sum()
        return loss(values, target) + 0 * hits

    return [
        ("loss", lambda: loss(logits.float(), target), (logits,)),
        ("loss_and_accuracy", with_accuracy, (logits,)),
        ("loss_of_16_bits", lambda: loss(logits, target), (logits,)),
    ]


def products() -> Iterator[tuple[object, ...]]:
    shapes = set()
    for (hidden, ffn), ranks, rows in product(LAYERS, (1, 2, 4, 8), (1024, 2048, 4096, 16384)):
        for inner, outer in (
            (hidden, 3 * hidden // ranks), (hidden // ranks, hidden),
            (hidden, 2 * ffn // ranks), (ffn // ranks, hidden),
        ):  # fmt: skip
            if inner % 16 == outer % 16 == 0:
                shapes.add((rows, inner, outer))
    shapes.update(ODD)
    for rows, inner, outer in sorted(shapes):
        x, weight, gradient = (
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
            for shape in ((rows, inner), (outer, inner), (rows, outer))
        )
        passes = (
            lambda x=x, weight=weight: x @ weight.t(),
            lambda gradient=gradient, weight=weight: gradient @ weight,
            lambda gradient=gradient, x=x: gradient.t() @ x,
        )
        yield rows, inner, outer, *(f"{seconds(each) * 1e6:.1f}" for each in passes)


if __name__ == "__main__":
    raise SystemExit(main())
