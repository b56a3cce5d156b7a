"""The settings of decoding that a publisher may give, and which of them are not applied here.

Every field of transformers' `GenerationConfig` (5.23) is in one of the tables, so that a new one
cannot be passed over silently.
"""

from collections.abc import Mapping

from dragoman.folder.foreign.reading import HF
from dragoman.models.config import DecoderOnlyConfig, EncoderDecoderConfig, ModelConfig


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


APPLIED = _names(
    "bad_words_ids bos_token_id decoder_start_token_id early_stopping eos_token_id length_penalty "
    "max_length max_new_tokens min_new_tokens no_repeat_ngram_size num_beams pad_token_id "
    "renormalize_logits repetition_penalty suppress_tokens"
)
"""Applied to translators and decoders."""
TRANSLATORS = frozenset({"forced_bos_token_id", "forced_eos_token_id", "min_length"})
"""Applied to translators only."""
SAMPLING = frozenset({"do_sample", "temperature", "top_k", "top_p", "min_p"})
"""Applied to decoders only; all but the first have no effect without sampling."""
IRRELEVANT = _names(
    # what is returned, how it is cached, and drafts that the model accepts or rejects
    "num_return_sequences output_attentions output_hidden_states output_scores output_logits "
    "return_dict_in_generate use_cache cache_implementation cache_config max_cache_len use_mtp "
    "is_assistant num_assistant_tokens num_assistant_tokens_schedule "
    "assistant_confidence_threshold prompt_lookup_num_tokens max_matching_ngram_size "
    "assistant_early_exit assistant_lookbehind target_lookbehind assistant_ensemble_weight "
    "speculation_type compile_config disable_compile continuous_batching_config low_memory "
    "prefill_chunk_size remove_invalid_values _from_model_config transformers_version"
)
"""Settings that change no text."""
NOT_APPLIED: Mapping[str, object] = {
    "max_time": None,
    "stop_strings": None,
    "top_h": None,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "token_healing": False,
    "guidance_scale": 1.0,
    "watermarking_config": None,
    "encoder_no_repeat_ngram_size": 0,
    "penalty_alpha": 0.0,
    "dola_layers": None,
    "diversity_penalty": 0.0,
    "num_beam_groups": 1,
    "constraints": None,
    "force_words_ids": None,
}
"""Settings that are not applied, each with the value that has no effect."""
ONLY_SAMPLING = frozenset({"top_h", "typical_p", "epsilon_cutoff", "eta_cutoff"})
"""Those of them that have no effect without sampling."""


def not_applied(said: HF, model: ModelConfig, *, alone: bool) -> list[str]:
    """Return the settings that change texts and are not applied, sorted by name.

    `said` are the publisher's settings without null values; `alone` tells that they stand in a
    `generation_config.json` of their own, where a key that is unknown is a setting too.
    """
    if not isinstance(model, DecoderOnlyConfig | EncoderDecoderConfig):
        return []
    applied, neutral = APPLIED | IRRELEVANT, dict(NOT_APPLIED)
    samples = bool(said.get("do_sample"))
    if isinstance(model, EncoderDecoderConfig):
        applied |= TRANSLATORS
        neutral |= {"do_sample": False, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    else:
        applied |= SAMPLING
        neutral |= {"forced_bos_token_id": None, "forced_eos_token_id": None, "min_length": 0}
        neutral |= {"num_beams": 1} if samples else {}
    if not samples:
        without_effect = SAMPLING | ONLY_SAMPLING
        applied |= without_effect
        neutral = {key: value for key, value in neutral.items() if key not in without_effect}
    return sorted(
        key
        for key, value in said.items()
        if (key in neutral and value not in (neutral[key], [], {}))
        or (alone and key not in applied | neutral.keys())
    )
