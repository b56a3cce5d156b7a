"""Configs of small Hugging Face models, by the name of their class."""

from typing import Any

V = 29
BART = {
    "vocab_size": V,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 16,
}
MARIAN = {**BART, "pad_token_id": V - 1, "decoder_start_token_id": V - 1}
PUBLISHED = {**MARIAN, "scale_embedding": True, "activation_function": "swish"}
SEPARATE = {**MARIAN, "share_encoder_decoder_embeddings": False}
FSMT = {**BART, "src_vocab_size": V, "tgt_vocab_size": V + 4}
FSMT["use_cache"] = False  # with a cache, their class masks no later tokens of a whole target
del FSMT["vocab_size"]
T5 = {
    "vocab_size": V,
    "d_model": 12,
    "d_kv": 5,
    "d_ff": 20,
    "num_layers": 2,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}
T5_1_1 = {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
GPT2 = {"vocab_size": V, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 40}
GPT2 |= {"bos_token_id": 2, "eos_token_id": 2}
LLAMA = {
    "vocab_size": V,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,  # fewer than the tokens of the longest text
}
ODD = {**LLAMA, "head_dim": 10, "num_key_value_heads": 1, "rms_norm_eps": 0.05}
UNREAD = {"sliding_window": 3, "use_sliding_window": True, "max_window_layers": 0}
WINDOWS = {**LLAMA, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 3}
GEMMA2 = {
    **ODD,
    "num_hidden_layers": 4,
    "sliding_window": 3,
    "query_pre_attn_scalar": 7,
    "attn_logit_softcapping": 2.0,
    "final_logit_softcapping": 5.0,
}
GEMMA3 = {
    **ODD,
    "num_hidden_layers": 4,
    "sliding_window": 3,
    "sliding_window_pattern": 3,
    "query_pre_attn_scalar": 7,
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 8.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
    },
}
IMAGES: dict[str, Any] = {
    "text_config": {**GEMMA3, "num_attention_heads": 8},
    "vision_config": {
        "hidden_size": 8,
        "image_size": 16,
        "patch_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    },
    "mm_tokens_per_image": 4,
}
BERT: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
OTHER = {**BERT, "hidden_act": "gelu_new", "layer_norm_eps": 0.1, "type_vocab_size": 3}
ONE_TYPE = {**BERT, "type_vocab_size": 1}
MODERN = {**BERT, "num_hidden_layers": 4, "local_attention": 6, "pad_token_id": 0}
LABELS = {"id2label": dict(enumerate("abcdefghijkl")), "num_labels": 12}
DISTIL: dict[str, Any] = {
    "vocab_size": V,
    "dim": 12,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 20,
    "max_position_embeddings": 16,
}


def rope(kind: str, **settings: float) -> dict[str, Any]:
    """Return a Llama config with this kind of rotary positions."""
    parameters = {"rope_type": kind, "rope_theta": 100.0, **settings}
    return {**LLAMA, "head_dim": 12, "rope_parameters": parameters}


PHI3 = {**LLAMA, "pad_token_id": 0, "eos_token_id": 2}
SMOLLM3 = {**PHI3, "num_hidden_layers": 4, "no_rope_layer_interval": 2}
OLMO3: dict[str, Any] = {
    **PHI3,
    "num_hidden_layers": 4,
    "sliding_window": 5,
    "rope_theta": 5e5,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 8.0,
        "attention_factor": 1.2,
        "original_max_position_embeddings": 64,
    },
}
GRANITE = {
    **PHI3,
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.4,
    "logits_scaling": 8.0,
    "tie_word_embeddings": True,
}
LONG: dict[str, Any] = {
    "original_max_position_embeddings": 10,
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 100.0,
        "short_factor": [1.0, 1.1, 1.5],
        "long_factor": [1.0, 3.0, 7.5],
    },
}
PHI4 = {**PHI3, **LONG, "hidden_size": 32, "tie_word_embeddings": True, "sliding_window": 400}
PHI4["rope_parameters"] = {**LONG["rope_parameters"], "partial_rotary_factor": 0.75}


MODELS: dict[str, dict[str, dict[str, Any]]] = {
    "MarianMTModel": {
        "marian": PUBLISHED,
        "marian-gelu": MARIAN,
        "marian-two-vocabularies": {**SEPARATE, "decoder_vocab_size": V + 4},
        "marian-untied": {**SEPARATE, "tie_word_embeddings": False},
    },
    "BartForConditionalGeneration": {
        "bart": BART,
        "bart-scaled": {**BART, "scale_embedding": True, "activation_function": "gelu_new"},
        "bart-untied": {**BART, "tie_word_embeddings": False},
    },
    "MBartForConditionalGeneration": {
        "mbart": {**BART, "scale_embedding": True},
        "mbart-relu": {**BART, "activation_function": "relu"},
    },
    "M2M100ForConditionalGeneration": {
        "m2m100": BART,
        "m2m100-padding-5": {**BART, "pad_token_id": 5},
        "m2m100-untied": {**BART, "tie_word_embeddings": False, "scale_embedding": False},
    },
    "FSMTForConditionalGeneration": {
        "fsmt": FSMT,
        "fsmt-wide-encoder": {**FSMT, "encoder_ffn_dim": 28},
        "fsmt-tied": {**FSMT, "tgt_vocab_size": V, "tie_word_embeddings": True},
    },
    "T5ForConditionalGeneration": {
        "t5": T5,
        "t5-deep-decoder": {**T5, "num_decoder_layers": 3, "layer_norm_epsilon": 0.1},
        "t5-v1.1": T5_1_1,
        "t5-gated-silu": {**T5_1_1, "feed_forward_proj": "gated-silu"},
    },
    "MT5ForConditionalGeneration": {
        "mt5": T5,
        "mt5-relu": {**T5, "feed_forward_proj": "relu", "num_decoder_layers": 3},
    },
    "UMT5ForConditionalGeneration": {
        "umt5": T5,
        "umt5-relu": {**T5, "feed_forward_proj": "relu", "num_decoder_layers": 3},
    },
    "GPT2LMHeadModel": {
        "gpt2": GPT2,
        "gpt2-padded": {**GPT2, "pad_token_id": 0, "n_inner": 20, "layer_norm_epsilon": 0.1},
        "gpt2-unscaled-untied": {**GPT2, "scale_attn_weights": False, "tie_word_embeddings": False},
        "gpt2-relu": {**GPT2, "activation_function": "relu"},
    },
    "LlamaForCausalLM": {
        "llama": LLAMA,
        "llama-tied-padded": {**ODD, "tie_word_embeddings": True, "pad_token_id": 0},
        "llama-biases": {**ODD, "attention_bias": True, "mlp_bias": True},
        "llama-attention-bias": {**LLAMA, "attention_bias": True},
        "llama-mlp-bias": {**LLAMA, "mlp_bias": True, "num_key_value_heads": None},
        "llama-dynamic": rope("dynamic", factor=3.0),
        "llama-yarn": rope("yarn", factor=4.0, original_max_position_embeddings=64),
        "llama-llama3": rope(
            "llama3",
            factor=4.0,
            original_max_position_embeddings=64,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
        ),
    },
    "MistralForCausalLM": {
        "mistral": {**LLAMA, "sliding_window": 3},
        "mistral-head-dim": {**ODD, "sliding_window": 5},
        "mistral-no-window": {**LLAMA, "sliding_window": None},
    },
    "Qwen2ForCausalLM": {
        "qwen2": LLAMA,
        "qwen2-windows": {**WINDOWS, "max_window_layers": 1, "tie_word_embeddings": True},
    },
    "Qwen3ForCausalLM": {
        "qwen3": ODD,
        "qwen3-biases": {
            **LLAMA,
            "head_dim": 8,
            "attention_bias": True,
            "tie_word_embeddings": True,
        },
        "qwen3-windows": {**WINDOWS, "head_dim": 6, "max_window_layers": 2},
    },
    "HunYuanDenseV1ForCausalLM": {
        "hunyuan": {**LLAMA, "head_dim": 6},
        "hunyuan-alpha": rope("dynamic", alpha=50.0, factor=1.0) | {"tie_word_embeddings": True},
        "hunyuan-dynamic": rope("dynamic", factor=3.0),
    },
    "Phi3ForCausalLM": {
        "phi3": {**PHI3, "num_key_value_heads": None, "sliding_window": 3},
        "phi3-window-alone": {
            **PHI3,
            "sliding_window": 3,
            "use_sliding_window": False,
            "layer_types": ["full_attention"] * 2,
        },
        "phi3-long": {**PHI3, **LONG},
        "phi3-short": {**PHI3, **LONG, "original_max_position_embeddings": 22},
        "phi4-mini": PHI4,
    },
    "SmolLM3ForCausalLM": {
        "smollm3": SMOLLM3,
        "smollm3-listed": {**SMOLLM3, "no_rope_layers": [0, 0, 1, 0], "attention_bias": True},
        "smollm3-windows": {**SMOLLM3, "use_sliding_window": True, "sliding_window": 5},
    },
    "Olmo2ForCausalLM": {
        "olmo2": {**PHI3, "num_key_value_heads": None},
        "olmo2-no-windows": {**PHI3, **UNREAD},
        "olmo2-grouped": {**PHI3, "rms_norm_eps": 0.05, "attention_bias": True},
    },
    "Olmo3ForCausalLM": {
        "olmo3": {**OLMO3, "sliding_window": 3},
        "olmo3-listed": {**OLMO3, "rope_scaling": None, "layer_types": ["sliding_attention"] * 4},
    },
    "GraniteForCausalLM": {
        "granite": GRANITE,
        "granite-untied": {**GRANITE, "tie_word_embeddings": False, "rms_norm_eps": 0.05},
        "granite-plain": {**PHI3, **UNREAD},
    },
    "GemmaForCausalLM": {
        "gemma": {**ODD, "pad_token_id": 0},
        "gemma-untied-gelu": {
            **LLAMA,
            "head_dim": 8,
            "hidden_act": "gelu",
            "tie_word_embeddings": False,
        },
    },
    "Gemma2ForCausalLM": {
        "gemma2": GEMMA2,
        "gemma2-no-caps": {
            **GEMMA2,
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
            "rope_parameters": {"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0},
        },
    },
    "Gemma3ForCausalLM": {
        "gemma3": GEMMA3,
        "gemma3-all-windows": {**GEMMA3, "layer_types": ["sliding_attention"] * 4},
        "gemma3-cap": {
            **GEMMA3,
            "layer_types": ["full_attention"] * 4,
            "final_logit_softcapping": 5.0,
            "attention_bias": True,
        },
    },
    "Gemma3ForConditionalGeneration": {"gemma3-images": IMAGES},
    "ModernBertModel": {"modernbert": MODERN},
    "ModernBertForMaskedLM": {
        "modernbert-masked": {**MODERN, "classifier_bias": True},
        "modernbert-full": {**MODERN, "layer_types": ["full_attention"] * 4},
    },
    "BertModel": {"bert": BERT},
    "BertForMaskedLM": {"bert-masked": BERT, "bert-masked-other": OTHER | {"pad_token_id": 4}},
    "BertForPreTraining": {"bert-pretraining": BERT},
    "BertForSequenceClassification": {"bert-classify": BERT | LABELS, "bert-classify-two": OTHER},
    "BertForTokenClassification": {"bert-tag": BERT | LABELS},
    **{
        f"{name}{head}": {f"{name}{head}": keys}
        for name in ("Roberta", "XLMRoberta", "Camembert", "MPNet")
        for head, keys in (
            ("Model", BERT),
            ("ForMaskedLM", ONE_TYPE),
            ("ForSequenceClassification", OTHER | LABELS),
            ("ForTokenClassification", BERT | LABELS),
        )
    },
    "DistilBertModel": {"distilbert": DISTIL},
    "DistilBertForMaskedLM": {
        "distilbert-masked": DISTIL | {"activation": "relu", "pad_token_id": 4}
    },
    "DistilBertForSequenceClassification": {"distilbert-classify": DISTIL | LABELS},
    "DistilBertForTokenClassification": {"distilbert-tag": DISTIL | LABELS},
}
"""The keys of a config, by the class and our name of the case."""
CASES = {case: (name, keys) for name, found in MODELS.items() for case, keys in found.items()}
