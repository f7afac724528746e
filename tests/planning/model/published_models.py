"""Configurations of published models, and their parameters."""

from __future__ import annotations

LLAMA_2_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}


LLAMA_3_8B = LLAMA_2_7B | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


LLAMA_3_70B = LLAMA_3_8B | {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
}


QWEN_25_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}


MIXTRAL_8X7B = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}


FALCON_40B = {
    "model_type": "falcon",
    "bias": False,
    "hidden_size": 8192,
    "new_decoder_architecture": True,
    "num_attention_heads": 128,
    "num_hidden_layers": 60,
    "num_kv_heads": 8,
    "vocab_size": 65024,
}


BLOOM = {
    "model_type": "bloom",
    "n_embed": 14336,
    "n_layer": 70,
    "num_attention_heads": 112,
    "vocab_size": 250880,
}


OPT_350M = {
    "model_type": "opt",
    "do_layer_norm_before": False,
    "ffn_dim": 4096,
    "hidden_size": 1024,
    "max_position_embeddings": 2048,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "vocab_size": 50272,
    "word_embed_proj_dim": 512,
}


GPT2 = {
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}


FLAN_T5_XL = {
    "model_type": "t5",
    "d_ff": 5120,
    "d_kv": 64,
    "d_model": 2048,
    "feed_forward_proj": "gated-gelu",
    "is_encoder_decoder": True,
    "num_decoder_layers": 24,
    "num_heads": 32,
    "num_layers": 24,
    "tie_word_embeddings": False,
    "vocab_size": 32128,
}


GPT_OSS_20B = {
    "model_type": "gpt_oss",
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "sliding_window": 128,
    "vocab_size": 201088,
}


PUBLISHED = {
    "llama-2-7b": (LLAMA_2_7B, 6_738_415_616),
    "llama-3-8b": (LLAMA_3_8B, 8_030_261_248),
    "llama-3-70b": (LLAMA_3_70B, 70_553_706_496),
    "qwen-2.5-7b": (QWEN_25_7B, 7_615_616_512),
    "mixtral-8x7b": (MIXTRAL_8X7B, 46_702_792_704),
    "falcon-40b": (FALCON_40B, 41_303_293_952),
    "bloom": (BLOOM, 176_247_271_424),
    "opt-350m": (OPT_350M, 331_196_416),
    "gpt2": (GPT2, 124_439_808),
    "flan-t5-xl": (FLAN_T5_XL, 2_849_757_184),
}
"""What the safetensors of the published checkpoints hold."""
