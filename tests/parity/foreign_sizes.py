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
        "marian-two-vocabularies": {**SEPARATE, "decoder_vocab_size": V + 4},
        "marian-untied": {**SEPARATE, "tie_word_embeddings": False},
    },
    "BartForConditionalGeneration": {"bart": BART},
    "MBartForConditionalGeneration": {"mbart": {**BART, "scale_embedding": True}},
    "M2M100ForConditionalGeneration": {"m2m100": BART},
    "FSMTForConditionalGeneration": {
        "fsmt": FSMT,
        "fsmt-wide-encoder": {**FSMT, "encoder_ffn_dim": 28},
        "fsmt-tied": {**FSMT, "tgt_vocab_size": V, "tie_word_embeddings": True},
    },
    "T5ForConditionalGeneration": {"t5": T5, "t5-v1.1": T5_1_1},
    "MT5ForConditionalGeneration": {"mt5": T5},
    "UMT5ForConditionalGeneration": {"umt5": T5},
    "GPT2LMHeadModel": {
        "gpt2": GPT2,
        "gpt2-padded": {**GPT2, "pad_token_id": 0, "n_inner": 20, "layer_norm_epsilon": 0.1},
    },
    "LlamaForCausalLM": {
        "llama": LLAMA,
        "llama-tied-padded": {**ODD, "tie_word_embeddings": True, "pad_token_id": 0},
        "llama-biases": {**ODD, "attention_bias": True, "mlp_bias": True},
        "llama-dynamic": rope("dynamic", factor=3.0),
    },
    "MistralForCausalLM": {"mistral": {**LLAMA, "sliding_window": 3}},
    "Starcoder2ForCausalLM": {"starcoder2": {**LLAMA, "sliding_window": 3}},
    "Qwen2ForCausalLM": {"qwen2": LLAMA},
    "Qwen3ForCausalLM": {"qwen3": ODD},
    "HunYuanDenseV1ForCausalLM": {"hunyuan": {**LLAMA, "head_dim": 6}},
    "Phi3ForCausalLM": {
        "phi3": {**PHI3, "num_key_value_heads": None, "sliding_window": 3},
        "phi4-mini": PHI4,
    },
    "SmolLM3ForCausalLM": {"smollm3": SMOLLM3},
    "Olmo2ForCausalLM": {"olmo2": {**PHI3, "num_key_value_heads": None}},
    "Olmo3ForCausalLM": {"olmo3": {**PHI3, "num_hidden_layers": 4, "sliding_window": 3}},
    "GraniteForCausalLM": {"granite": GRANITE},
    "GemmaForCausalLM": {"gemma": {**ODD, "pad_token_id": 0}},
    "Gemma2ForCausalLM": {
        "gemma2": GEMMA2,
        "gemma2-no-caps": {
            **GEMMA2,
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
        },
    },
    "Gemma3ForCausalLM": {"gemma3": GEMMA3},
    "Gemma3ForConditionalGeneration": {"gemma3-images": IMAGES},
    "ModernBertModel": {"modernbert": MODERN},
    "ModernBertForMaskedLM": {"modernbert-masked": {**MODERN, "classifier_bias": True}},
    "BertModel": {"bert": BERT},
    "BertForMaskedLM": {"bert-masked": BERT, "bert-masked-other": OTHER | {"pad_token_id": 4}},
    "BertForPreTraining": {"bert-pretraining": BERT},
    "BertForSequenceClassification": {"bert-classify": BERT | LABELS},
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
"""The keys of a config, by the class and our name of the case: one of each class, and those that
`test_foreign_attributes` and `test_foreign_keys` do not vary."""
CASES = {case: (name, keys) for name, found in MODELS.items() for case, keys in found.items()}
