"""The settings of a Hugging Face folder: sizes, and the publisher's decoding options.

`generation_config.json` contains the decoding options; older folders have them in `config.json`.
Every field of transformers' `GenerationConfig` (5.23) is in one of the tables below, so that a new
one cannot be ignored silently.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.decoding import GENERATING, Decoding, EarlyStopping
from dragoman.errors import InputError
from dragoman.files.reading import read_object
from dragoman.folder.foreign import FAMILIES, family
from dragoman.folder.foreign.reading import HF, UNKNOWN_ID
from dragoman.folder.format import (
    AS_IT_IS,
    CONFIG,
    TRANSLATION,
    FolderConfig,
    GenerationDefaults,
    PublishedDefaults,
    ReadingDefaults,
)
from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.models.heads import TaggingHead

GENERATION = "generation_config.json"
STOPPING: Mapping[object, EarlyStopping] = {False: "estimate", True: "full", "never": "never"}
FRAME = 2
"""Positions reserved for the tokens around a text."""


def read_foreign_config(folder: Path, hf: HF) -> FolderConfig:
    """Return the equivalent config of a dragoman folder. Raises InputError, naming the key."""
    generation = folder / GENERATION
    said = _settings(folder, hf)
    file = folder / CONFIG
    try:
        model = family(hf).config(hf)
        file = generation if generation.is_file() else file
        published = _published(hf, said, model)
        return FolderConfig(
            format=AS_IT_IS,
            model=model,
            decoding=_decoding(hf, said),
            generation=_generation(hf, said) if isinstance(model, DecoderOnlyConfig) else None,
            reading=_reading(hf, model),
            published=published,
        )
    except InputError as error:
        raise InputError(f"{file}: {str(error).removesuffix('.')}.") from error
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise InputError(f"{file} has a value of a wrong kind ({error}).") from error


def _settings(folder: Path, hf: HF) -> dict[str, Any]:
    """Return the decoding options that are not null."""
    file = folder / GENERATION
    if not file.is_file() and hf.get("force_bos_token_to_be_generated"):  # BART in 2020
        hf = {**hf, "forced_bos_token_id": hf.get("bos_token_id")}
    said = read_object(file) if file.is_file() else hf
    return {key: value for key, value in said.items() if value is not None}


def as_generated(folder: Path, hf: HF) -> HF:
    """Return a translator's config with the ids that begin and end the targets of `generate`.

    It reads them in the decoding options, and begins with bos if these name no other start.
    """
    said, usual = _settings(folder, hf), {**FAMILIES[hf["model_type"]].defaults, **hf}
    named = usual.get("decoder_start_token_id") is not None  # or else it is a language
    start = said.get("decoder_start_token_id", said.get("bos_token_id") if named else None)
    ids = {"decoder_start_token_id": start, "eos_token_id": said.get("eos_token_id")}
    return {**hf, **{key: value for key, value in ids.items() if value is not None}}


def _decoding(hf: HF, said: HF) -> Decoding:
    """Return the publisher's beam settings, and its maximum length if it sets one."""
    new, plain = said.get("max_new_tokens"), TRANSLATION
    longest = new or said.get("max_length", 0) - 1  # which counts the start token
    limited = longest > 0
    return Decoding(
        beam_size=said.get("num_beams", 1),
        length_penalty=float(said.get("length_penalty", 1.0)),
        max_length_factor=0.0 if limited else plain.max_length_factor,
        max_length_constant=longest if limited else plain.max_length_constant,
        max_src_tokens=_places(hf, 512),
        split_sentences=False if family(hf).whole else None,
    )


def _reading(hf: HF, model: ModelConfig) -> ReadingDefaults:
    """Return reading defaults with as many tokens as positions: RoBERTa has two unused ones.

    A folder does not say whether a tagger learned BIO or IOB1, so its tags need not follow either.
    """
    encoder = model if isinstance(model, EncoderOnlyConfig) else None
    places = encoder.positions.num_positions if encoder else None
    return ReadingDefaults(
        max_tokens=max(1, places - FRAME) if places else _places(hf, 512),
        inside_begins=encoder is not None and isinstance(encoder.head, TaggingHead),
    )


def _generation(hf: HF, said: HF) -> GenerationDefaults:
    """Return generation defaults: sampling if the publisher samples, otherwise greedy."""
    longest, whole = said.get("max_new_tokens"), said.get("max_length")
    return GenerationDefaults(
        context=_places(hf, 1024) + FRAME,
        max_tokens=longest or whole or GENERATING.max_tokens,
        count_prompt=bool(whole and not longest),
        temperature=float(said.get("temperature", 1.0)) if said.get("do_sample") else 0.0,
    )


def _published(hf: HF, said: HF, model: ModelConfig) -> PublishedDefaults:
    """Return all other settings."""
    samples, translates = bool(said.get("do_sample")), isinstance(model, EncoderDecoderConfig)
    begin = said.get("forced_bos_token_id")
    size = model.tgt_vocab_size if isinstance(model, EncoderDecoderConfig) else model.vocab_size
    ids = {} if begin is None else {"forced_bos_token_id": begin}
    if isinstance(model, EncoderDecoderConfig):
        ids |= {"decoder_start_token_id": model.bos_id, "eos_token_id": model.eos_id}
    for key, id_ in ids.items():
        if not (0 if key in said else UNKNOWN_ID) <= id_ < size:
            raise InputError(f"{key} is {id_}, but the model has {size} tokens")
    least = int(said.get("min_length", 0)) - 1 if translates else 0
    sequences, forbidden = _forbidden(said, size)
    stopping = said.get("early_stopping", False)
    if stopping not in STOPPING:
        raise InputError(f"early_stopping is {stopping!r}; it must be true, false or never")
    return PublishedDefaults(
        family=str(hf["model_type"]),
        forbidden=forbidden,
        forbidden_sequences=sequences,
        begin=() if begin is None or not translates else (int(begin),),
        forced_end=translates and _ends_alone(said.get("forced_eos_token_id"), model),
        ends=_ends(said, size) if isinstance(model, DecoderOnlyConfig) else (),
        early_stopping=STOPPING[stopping],
        renormalize=bool(said.get("renormalize_logits", False)),
        min_length=max(0, int(said.get("min_new_tokens", least))),
        no_repeat_ngrams=int(said.get("no_repeat_ngram_size", 0)),
        repetition_penalty=float(said.get("repetition_penalty", 1.0)),
        top_k=(int(said.get("top_k", 50)) or None) if samples else None,
        top_p=float(said.get("top_p", 1.0)) if samples else 1.0,
        min_p=float(said.get("min_p", 0.0)) if samples else 0.0,
    )


def _ends(said: HF, size: int) -> tuple[int, ...]:
    """Return the ids that end a text, without those beyond the vocabulary."""
    ends = said.get("eos_token_id", ())
    ids = map(int, (ends,) if isinstance(ends, int) else ends)
    return tuple(id_ for id_ in ids if 0 <= id_ < size)


def _ends_alone(ids: object, model: ModelConfig) -> bool:
    """Whether an id, or a list, is the one id that ends a target."""
    return ids in (model.eos_id, [model.eos_id])


def _forbidden(said: HF, size: int) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return the forbidden sequences of several ids, and the forbidden single ids.

    Those with an id beyond the vocabulary are left out: they cannot occur.
    """
    words = {tuple(map(int, word)) for word in said.get("bad_words_ids", ())}
    words -= {(end,) for end in _ends(said, size)}  # ignored there
    words |= {(int(id_),) for id_ in said.get("suppress_tokens", ())}
    within = sorted(word for word in words if word and all(0 <= id_ < size for id_ in word))
    single = tuple(word[0] for word in within if len(word) == 1)
    return tuple(word for word in within if len(word) > 1), single


def _places(hf: HF, otherwise: int) -> int:
    """Return the maximum number of tokens in a source."""
    hf = {**family(hf).defaults, **hf}
    places = hf.get("max_position_embeddings", hf.get("n_positions", otherwise))
    return max(1, int(places) - FRAME)


# ---------------------------------------------------------------- what is not applied


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


APPLIED = _names(
    "bad_words_ids bos_token_id decoder_start_token_id early_stopping eos_token_id length_penalty "
    "max_length max_new_tokens min_new_tokens no_repeat_ngram_size num_beams pad_token_id "
    "renormalize_logits repetition_penalty suppress_tokens"
)
"""Applied to translators and decoders."""
TRANSLATORS: Mapping[str, object] = {
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "min_length": 0,
}
"""Applied to translators only, with the value that has no effect."""
SAMPLING: Mapping[str, object] = {
    "do_sample": False,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
}
"""The same for decoders only; all but the first have no effect without sampling."""
IRRELEVANT = _names(
    # output, caching, and drafts that the model accepts or rejects
    "num_return_sequences output_attentions output_hidden_states output_scores output_logits "
    "return_dict_in_generate use_cache cache_implementation cache_config max_cache_len use_mtp "
    "is_assistant num_assistant_tokens num_assistant_tokens_schedule "
    "assistant_confidence_threshold prompt_lookup_num_tokens max_matching_ngram_size "
    "assistant_early_exit assistant_lookbehind target_lookbehind assistant_ensemble_weight "
    "speculation_type compile_config disable_compile continuous_batching_config low_memory "
    "prefill_chunk_size remove_invalid_values _from_model_config transformers_version"
)
"""Settings that do not change any text."""
NOT_APPLIED: Mapping[str, object] = {
    **dict.fromkeys(
        _names(
            "max_time stop_strings top_h exponential_decay_length_penalty begin_suppress_tokens "
            "sequence_bias watermarking_config dola_layers constraints force_words_ids"
        )
    ),
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "encoder_repetition_penalty": 1.0,
    "token_healing": False,
    "guidance_scale": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "penalty_alpha": 0.0,
    "diversity_penalty": 0.0,
    "num_beam_groups": 1,
}
"""Settings that are not applied, with the value that has no effect."""
ENDS = _names("eos_token_id forced_eos_token_id")
"""Applied to translators if they name the same id, and no others."""
ONLY_SAMPLING = _names("top_h typical_p epsilon_cutoff eta_cutoff")
"""Those of them that have no effect without sampling."""
KNOWN = APPLIED | IRRELEVANT | TRANSLATORS.keys() | SAMPLING.keys() | NOT_APPLIED.keys()


def warn_of_settings(folder: Path, hf: HF, model: ModelConfig) -> None:
    """Warn about publisher settings that change texts and are not applied.

    These include unknown keys of a `generation_config.json`.
    """
    if isinstance(model, EncoderOnlyConfig):
        return
    if "vision_config" in hf:
        warnings.warn(
            f"{folder} holds a model for text and images, of which the part for text is used.",
            stacklevel=3,
        )
    said, alone = _settings(folder, hf), (folder / GENERATION).is_file()
    samples, translates = bool(said.get("do_sample")), isinstance(model, EncoderDecoderConfig)
    neutral = {**NOT_APPLIED, **(SAMPLING if translates else TRANSLATORS)}
    if samples and not translates:
        neutral["num_beams"] = 1
    without_effect = frozenset() if samples else ONLY_SAMPLING | SAMPLING.keys()

    def changes_texts(key: str, value: object) -> bool:
        if key in ENDS and translates:
            return not _ends_alone(value, model)
        if key in neutral:
            return key not in without_effect and value not in (neutral[key], [], {})
        return alone and key not in KNOWN

    if names := sorted(key for key, value in said.items() if changes_texts(key, value)):
        warnings.warn(
            f"{folder / (GENERATION if alone else CONFIG)} sets {', '.join(names)}, which dragoman "
            "does not apply: texts may differ from the publisher's.",
            stacklevel=3,
        )
