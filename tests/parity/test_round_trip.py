"""From Hugging Face to our folder and back: every tensor, bit for bit, and every other file."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load, load_file
from tests.parity.foreign import make_named
from tests.parity.foreign_sizes import CASES
from tests.parity.test_foreign_folders import kept

from dragoman.folder.foreign import FAMILIES, family
from dragoman.folder.format import ORIGIN
from dragoman.folder.origin import give_back

PLACELESS = (  # parts that our models have no place for
    *("vision_tower.", "multi_modal_projector.", "pooler.dense.", "cls.seq_relationship."),
    *("embed_positions.weight", "embeddings.position_embeddings.weight"),
)
IMAGELESS = pytest.mark.filterwarnings("ignore:.*for text and images")


def test_every_family_is_here() -> None:
    """A new family's way back is tested too."""
    kinds = [getattr(transformers, name) for name, _ in CASES.values()]
    assert {kind.config_class.model_type for kind in kinds} == set(FAMILIES)


@IMAGELESS
@pytest.mark.parametrize("case", CASES)
def test_the_way_back_gives_every_bit(case: str, tmp_path: Path) -> None:
    """This holds through our folder; digits lost from fp64 are stored separately."""
    theirs = make_named(*CASES[case], torch.float32)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        folder = tmp_path / str(dtype)
        theirs.to(dtype).save_pretrained(folder)
        expected = load_file(folder / "model.safetensors")
        origin = tmp_path / f"ours-{dtype}" / ORIGIN
        opened = kept(folder, origin.parent)
        found, others = give_back(origin, opened.model.state_dict(), opened.config.model)
        assert {name: content.data for name, content in others.items()} == {
            path.name: path.read_bytes() for path in folder.glob("*.json")
        }
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert found[name].dtype == dtype
            assert torch.equal(found[name], tensor), name
        if dtype == torch.bfloat16:
            rest = {*load((origin / "rest.safetensors").read_bytes())}
            assert all(any(part in name for part in PLACELESS) for name in rest)


@IMAGELESS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("case", ["gemma", "gemma3-images", "bart", "mt5", "phi3"])
def test_weights_that_were_trained_go_back_too(
    case: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    """Kept originals do not replace trained weights; 16 bits become 32."""
    make_named(*CASES[case], torch.float32).to(dtype).save_pretrained(tmp_path)
    opened = kept(tmp_path, tmp_path / "ours")
    model = opened.config.model
    trained = {name: tensor + 0.5 for name, tensor in opened.model.state_dict().items()}
    found, files = give_back(tmp_path / "ours" / ORIGIN, trained, model)
    assert json.loads(files["config.json"].data)["dtype"] == "float32"
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    for name, tensor in family(opened.hf).each_weight(found, model):
        assert torch.allclose(tensor, trained[name], atol=1e-6), name
