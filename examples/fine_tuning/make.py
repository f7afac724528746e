"""Makes a tiny Llama with random weights and a tokenizer: `python make.py FOLDER`.

The files are those of `save_pretrained()`, so a model from the Hub can take their place.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXTS = Path(__file__).with_name("data")
HIDDEN, FFN, HEADS, LAYERS = 32, 64, 2, 2


def tokenizer() -> Tokenizer:
    """Train a byte-pair tokenizer on the texts."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<eos>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train([str(path) for path in sorted(TEXTS.glob("*.txt"))], trainer)
    return made


def weights(vocabulary: int) -> dict[str, np.ndarray]:
    """Return random weights under the names that Llama's modules have."""
    chance = np.random.default_rng(1)
    square, wide = (HIDDEN, HIDDEN), (FFN, HIDDEN)
    shapes = {f"self_attn.{name}_proj": square for name in "qkvo"}
    shapes |= {"mlp.gate_proj": wide, "mlp.up_proj": wide, "mlp.down_proj": (HIDDEN, FFN)}
    named = {"embed_tokens": (vocabulary, HIDDEN)}
    named |= {f"layers.{i}.{name}": shape for i in range(LAYERS) for name, shape in shapes.items()}
    norms = ["norm"]
    norms += [
        f"layers.{i}.{name}_layernorm"
        for i in range(LAYERS)
        for name in ("input", "post_attention")
    ]
    return {
        **{
            f"model.{name}.weight": chance.normal(0, 0.05, shape).astype(np.float32)
            for name, shape in named.items()
        },
        **{f"model.{name}.weight": np.ones(HIDDEN, np.float32) for name in norms},
    }


def main(folder: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    words = tokenizer()
    words.save(str(target / "tokenizer.json"))
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>"}
    (target / "tokenizer_config.json").write_text(json.dumps(described))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": words.get_vocab_size(),
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": 128,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 0,
    }
    (target / "config.json").write_text(json.dumps(config))
    save_file(weights(words.get_vocab_size()), target / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main(*sys.argv[1:])
