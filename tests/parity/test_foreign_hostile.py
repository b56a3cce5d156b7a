"""Extra requests of a publisher's folder are neither loaded nor copied."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.foreign_folders import set_keys
from tests.parity.test_verify import make, read

from dragoman.convert.huggingface import load_theirs
from dragoman.convert.published import take_over, verify
from dragoman.errors import InputError

pytest.importorskip("transformers", reason="needs transformers")

KERNEL = "kernels-community/flash-attn"
"""A name for which transformers downloads and runs code."""


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
def test_the_class_is_told_what_the_family_knows(key: str, tmp_path: Path) -> None:
    """A kernel of the Hub, a dtype, a tokenizer's class or a cache state are not passed on."""
    folder = make(tmp_path / "theirs", "gpt2")
    said: dict[str, Any] = {key: KERNEL, "torch_dtype": "int8", "use_kernels": True, "n_ctx": "x"}
    said |= {"pruned_heads": {"0": [0]}, "base_model_tp_plan": {"*": "colwise"}}
    set_keys(folder, **said)
    config = load_theirs(folder).config
    assert config._attn_implementation == "eager"
    assert KERNEL not in str(config.to_dict())
    assert not {"use_kernels", "n_ctx", "pruned_heads"} & config.to_dict().keys()
    assert verify(read(folder)) <= 1e-5


def test_adapters_beside_a_model_are_not_loaded_with_it(tmp_path: Path) -> None:
    """The class does not read the folder, where a file names the weights of another model."""
    folder = make(tmp_path / "theirs", "gpt2")
    said = {"peft_type": "LORA", "base_model_name_or_path": str(tmp_path / "elsewhere")}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    with pytest.warns(UserWarning, match="used without the adapters beside them"):
        assert verify(read(folder)) <= 1e-5


def test_files_are_taken_over_by_name(tmp_path: Path) -> None:
    """Links are followed inside the folder and to a Hub's cache; nothing else is copied."""
    plain = make(tmp_path / "plain", "gpt2")
    cache = tmp_path / "models--a--b"
    (cache / "blobs").mkdir(parents=True)
    (folder := cache / "snapshots" / "0123abc").mkdir(parents=True)
    for number, path in enumerate(sorted(plain.iterdir())):
        shutil.copyfile(path, cache / "blobs" / str(number))
        (folder / path.name).symlink_to(f"../../blobs/{number}")
    (secret := tmp_path / "secret").write_text("{}")
    (folder / "LICENSE").write_text("free")
    (folder / "modules.json").write_text("[]")  # it says how text vectors are pooled
    (folder / "NOTICE").symlink_to("LICENSE")
    (folder / "more.json").symlink_to(secret)
    (folder / "modeling_gpt2.py").write_text("raise SystemExit")
    take_over(folder, tmp_path / "ours")
    kept = {path.name for path in (tmp_path / "ours" / "huggingface").iterdir()}
    assert kept >= {"config.json", "tokenizer.json", "modules.json", "LICENSE", "NOTICE"}
    assert not kept & {"more.json", "modeling_gpt2.py"}
    for target in (secret, Path("../../../secret"), Path("../../blobs/../../secret")):
        (folder / "README.md").unlink(missing_ok=True)
        (folder / "README.md").symlink_to(target)
        with pytest.raises(InputError, match=r"README\.md is a link out of its folder"):
            take_over(folder, tmp_path / "again")
        assert not (tmp_path / "again").exists()


def test_a_converted_folder_has_no_files_without_hashes(tmp_path: Path) -> None:
    """An additional vocabulary next to the listed files would change the ids of texts."""
    take_over(make(tmp_path / "theirs", "gpt2"), tmp_path / "ours")
    (tmp_path / "ours" / "huggingface" / ".DS_Store").write_bytes(b"")
    read(tmp_path / "ours")
    (tmp_path / "ours" / "huggingface" / "added_tokens.json").write_text("{}")
    with pytest.raises(InputError, match=r"added_tokens\.json is not among the files .* hashes"):
        read(tmp_path / "ours")


@pytest.mark.parametrize("label", ["\x1b]0;title\x07", "\x9b2J", "a\nb"])
def test_a_label_cannot_command_the_terminal(label: str, tmp_path: Path) -> None:
    """Escape sequences and line breaks are refused when the folder is read."""
    folder = make(tmp_path / "theirs", "bert-classes")
    set_keys(folder, id2label={"0": label, "1": "good"})
    with pytest.raises(InputError, match=r"config\.json: the label .* has control characters"):
        read(folder)


SAID: dict[str, tuple[dict[str, Any], str]] = {
    "max_length": ({"max_length": 10**12}, "max_length_constant is .* must be .* at most"),
    "max_new_tokens": ({"max_new_tokens": 10**12}, "max_length_constant is .* at most"),
    "length_penalty": ({"length_penalty": 1e300}, "length_penalty is 1e.300; it must be"),
    "suppress_tokens": ({"suppress_tokens": ["a"]}, "a value of a wrong kind"),
    "forced_bos_token_id": ({"forced_bos_token_id": -5}, "forced_bos_token_id is -5"),
}


@pytest.mark.parametrize("case", SAID)
def test_settings_without_an_end_are_refused(case: str, tmp_path: Path) -> None:
    """Lengths, exponents and ids of a generation_config.json are refused with their names."""
    folder = make(tmp_path / "theirs", "bart")
    said, message = SAID[case]
    (folder / "generation_config.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match=rf"generation_config\.json.*{message}"):
        read(folder)


def test_a_truth_value_in_place_of_an_id_is_a_number(tmp_path: Path) -> None:
    """As in transformers; as an index it would select all tokens."""
    folder = make(tmp_path / "theirs", "gpt2")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": True}))
    published = read(folder).config.published
    assert published is not None
    assert [type(id_) for id_ in published.ends] == [int]


def test_positions_without_an_end_are_refused(tmp_path: Path) -> None:
    """A source of 10^12 tokens is refused."""
    folder = make(tmp_path / "theirs", "llama")
    set_keys(folder, max_position_embeddings=10**12)
    with pytest.raises(InputError, match=r"config\.json: .* at most"):
        read(folder)
