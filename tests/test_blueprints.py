"""The drawing of an encoder and the shapes of a text follow the modules: change one, and they change."""

from __future__ import annotations

import pytest
import torch
from test_figures import on_its_page

from rtxlib.errors import InputError
from rtxlib.models import Encoder, build, preset
from rtxstudy.questions.anatomy import blueprint_figures
from rtxstudy.questions.anatomy.blueprints import blueprint, blueprints
from rtxstudy.questions.anatomy.shapes import trace

NAMES = {"BERT": "bert-base", "MiniLM": "minilm-l6", "ModernBERT": "modernbert-base"}


def on_meta(name: str, **changes: object) -> Encoder:
    with torch.device("meta"):
        return Encoder(preset(name, **changes))


@pytest.mark.parametrize("name", [*NAMES.values(), "recurrent-3x2x256"])
def test_the_parts_of_an_encoder_have_all_its_parameters(name: str) -> None:
    parts = blueprint(on_meta(name))
    assert parts["parameters"].sum() == parts["total"].iloc[0] == sum(p.numel() for p in on_meta(name).parameters())


def test_the_place_of_a_norm_and_the_kinds_of_layers_are_read_from_the_modules() -> None:
    post, pre = blueprint(on_meta("minilm-l3")), blueprint(on_meta("modernbert-base"))
    within = [list(parts.loc[parts["stage"] == "layer", "part"]) for parts in (post, pre)]
    assert within[0] == ["attention", "add and norm", "feed-forward", "add and norm"]
    assert within[1] == ["norm", "attention", "add", "norm", "feed-forward", "add"]
    assert post["layers"].iloc[0] == "GGG" and pre["layers"].iloc[0] == "GLL" * 7 + "G"
    assert pre.loc[pre["part"] == "norm", "words"].tolist()[1] == "LayerNorm, not in layer 1"
    changed = on_meta("modernbert-base", local_attention=None, first_attention_norm=True)
    assert set(blueprint(changed)["layers"].iloc[0]) == {"G"} and "not in layer" not in " ".join(
        blueprint(changed)["words"]
    )


def test_the_drawing_shows_each_part_of_each_encoder_and_overlaps_nothing() -> None:
    table = blueprints(NAMES)
    _, texts = on_its_page(lambda: blueprint_figures.blueprints(table))
    shown = " ".join(text.get_text() for text in texts).replace("\n", " ")
    shown = shown.replace("\xa0", " ")
    assert all(name in shown for name in NAMES) and "109.5 M" in shown and "22 layers" in shown
    assert all(part.replace("\xa0", " ") in shown for part in table["words"])
    loops = {name: name for name in ("standard-2x32", "recurrent-1x2x32", "recurrent-1x3x32")}
    _, texts = on_its_page(lambda: blueprint_figures.blueprints(blueprints(loops, vocab_size=400)))
    assert any("1\xa0layer, 3\xa0passes" in text.get_text() for text in texts)
    with pytest.raises(InputError, match="room for 3 encoders, not 4"):
        blueprint_figures.blueprints(blueprints(NAMES | {"another": "bert-tiny"}))
    with pytest.raises(InputError, match="'words'"):
        blueprint_figures.blueprints(table.drop(columns="words"))


@pytest.mark.parametrize("name", ["bert-tiny", "recurrent-1x3x64", "minilm-l3", "modernbert-base"])
def test_the_shapes_on_the_way_and_the_parameters_are_those_of_the_model(name: str) -> None:
    small = {"num_labels": 3, "vocab_size": 90}
    small |= {"pad_token_id": 0, "hidden_size": 48, "intermediate_size": 64} if "-base" in name else {}
    steps = trace(name, 4, 10, **small).set_index("step")
    model = build(name, **small).eval()
    assert steps["parameters"].sum() == sum(p.numel() for p in model.parameters())
    with torch.inference_mode():
        out = model(torch.zeros((4, 10), dtype=torch.long), output_attentions=True, output_hidden_states=True)
    assert steps.loc["logits", "shape"] == str(tuple(out.logits.shape)) == "(4, 3)"
    assert steps.loc["attention weights", "shape"] == str(tuple(out.attentions[0].shape))
    assert steps.loc["states after the last layer", "shape"] == str(tuple(out.hidden_states[-1].shape))
    assert steps.loc["state after a layer", "times"] == len(out.attentions)


