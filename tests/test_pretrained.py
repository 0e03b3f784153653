"""Checkpoints open with every tensor accounted for or with an error that explains it; other libraries open what we save."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from near import assert_near
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    Trainer,
    TrainingArguments,
    pipeline,
)

from rtx.embedding import embed
from rtxlib.data import tokenization
from rtxlib.errors import InputError
from rtxlib.models import Encoder, ModelConfig, build, preset, pretrained
from rtxlib.models.convert import to_loop

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SIZES = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
IDS = {"pad_token_id": 0, "cls_token_id": 1, "bos_token_id": 1, "sep_token_id": 2, "eos_token_id": 2}


@pytest.fixture
def ids() -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randint(5, 40, (2, 9))


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    BertModel(BertConfig(**SIZES)).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def rewrite(folder: Path, change) -> None:
    """Change the tensors of a checkpoint in place."""
    tensors = load_file(folder / pretrained.WEIGHTS)
    change(tensors)
    save_file(tensors, folder / pretrained.WEIGHTS, metadata={"format": "pt"})


# ---------------------------------------- opening


@torch.inference_mode()
def test_the_real_minilm_is_whole_and_equals_bert_model(hub: str) -> None:
    ours = pretrained.load(MINILM)
    reference = BertModel.from_pretrained(pretrained.find(MINILM)).eval()
    assert sum(p.numel() for p in ours.parameters()) == 22_713_216 and ours.loaded.startswith("loaded 103 of 104 tensors;")
    config = ours.config
    assert (config.pooling, config.normalize, config.max_seq_length) == ("mean", True, 256)
    torch.manual_seed(0)
    ids = torch.randint(1000, 30000, (3, 40))
    mask = torch.ones_like(ids)
    mask[1, 11:], mask[2, 1:] = 0, 0
    expected, got = reference(ids, mask), ours(ids, mask)
    assert_near(got.last_hidden_state[mask.bool()], expected.last_hidden_state[mask.bool()])
    assert_near(got.pooler_output, expected.pooler_output)


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_a_masked_language_model_gives_its_encoder(kind: str, tmp_path: Path, ids: torch.Tensor) -> None:
    """Its names have a prefix, its head is left out, and BERT's has no pooler."""
    torch.manual_seed(0)
    if kind == "bert":
        model = BertForMaskedLM(BertConfig(**SIZES)).eval()
        inner = model.bert
    else:
        model = ModernBertForMaskedLM(ModernBertConfig(**SIZES, **IDS)).eval()
        inner = model.model
    model.save_pretrained(tmp_path / "lm")
    ours = pretrained.load(str(tmp_path / "lm"))
    assert not ours.config.pooler and ours.config.pooling in ("cls", "mean")
    kept, head = len(inner.state_dict()), "cls.predictions.bias" if kind == "bert" else "decoder.bias"
    assert ours.loaded.startswith(f"loaded {kept} of ") and head in ours.loaded.partition("; left out: ")[2]
    assert_near(ours(ids).last_hidden_state, inner(ids).last_hidden_state)


@torch.inference_mode()
def test_names_of_old_checkpoints_and_half_precision_are_understood(bert: Path, ids: torch.Tensor) -> None:
    expected = pretrained.load(str(bert))(ids).last_hidden_state

    def age(tensors: dict) -> None:
        for name in list(tensors):
            new = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            tensors["bert." + new] = tensors.pop(name).to(torch.bfloat16)
        tensors["bert.embeddings.position_ids"] = torch.arange(512)[None]

    rewrite(bert, age)
    ours = pretrained.load(str(bert))
    assert {p.dtype for p in ours.parameters()} == {torch.float32}
    assert_near(ours(ids).last_hidden_state, expected, 2**-5)  # bfloat16 has eight bits


@torch.inference_mode()
def test_weights_in_several_files_are_read(tmp_path: Path, ids: torch.Tensor) -> None:
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SIZES)).eval()
    model.save_pretrained(tmp_path / "cut", max_shard_size="20KB")
    assert len(list((tmp_path / "cut").glob("model-*.safetensors"))) > 1
    got = pretrained.load(str(tmp_path / "cut"))(ids).last_hidden_state
    assert_near(got, model(ids).last_hidden_state)


@torch.inference_mode()
def test_our_own_checkpoints_open_too_and_lend_a_classifier_its_encoder(tmp_path: Path, ids: torch.Tensor) -> None:
    model = build("recurrent-2x2x32", vocab_size=40).eval()
    model.save_pretrained(tmp_path / "ours")
    encoder = pretrained.load(str(tmp_path / "ours"))
    assert_near(encoder(ids).last_hidden_state, model.encoder(ids).last_hidden_state)
    torch.manual_seed(1)
    config = pretrained.read_config(str(tmp_path / "ours"), num_labels=4)
    fresh = pretrained.with_head(pretrained.load(str(tmp_path / "ours"), config=config))
    assert fresh(ids).logits.shape == (2, 4)
    assert_near(fresh.encoder(ids).last_hidden_state, model.encoder(ids).last_hidden_state)
    with pytest.raises(InputError, match="pooling='nonsense' is not one of"):
        pretrained.read_config(str(tmp_path / "ours"), pooling="nonsense")


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_mistyped_field_raises_for_our_checkpoints_and_for_others(bert: Path, tmp_path: Path, whose: str) -> None:
    build("recurrent-2x2x32", vocab_size=40).save_pretrained(tmp_path / "ours")
    with pytest.raises(InputError, match=r"no setting 'recurent_depth'\. Did you mean 'recurrent_depth'"):
        pretrained.read_config(str(tmp_path / "ours" if whose == "ours" else bert), recurent_depth=3)


def test_a_pickle_is_opened_only_by_name_and_never_runs_code(bert: Path, tmp_path: Path) -> None:
    tensors = load_file(bert / pretrained.WEIGHTS)
    (bert / pretrained.WEIGHTS).unlink()
    torch.save(tensors, bert / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"holds no model\.safetensors.*pytorch_model\.bin.*can run code"):
        pretrained.load(str(bert))
    assert pretrained.load(str(bert), weights="pytorch_model.bin").config.hidden_size == 32

    class Trap:
        def __reduce__(self) -> tuple:
            return Path.touch, (tmp_path / "sprung",)

    torch.save({"weights": Trap()}, bert / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin holds more than tensors"):
        pretrained.load(str(bert), weights="pytorch_model.bin")
    assert not (tmp_path / "sprung").exists()


def cut(bert: Path) -> dict:
    """The checkpoint cut into two files with an index, whose content is returned."""
    tensors = load_file(bert / pretrained.WEIGHTS)
    (bert / pretrained.WEIGHTS).unlink()
    where = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(tensors)}
    for file in set(where.values()):
        save_file({name: tensors[name] for name in tensors if where[name] == file}, bert / file)
    index = {"metadata": {}, "weight_map": where}
    (bert / pretrained.INDEX).write_text(json.dumps(index))
    return index


def test_an_index_names_only_safetensors_of_its_own_folder(bert: Path, tmp_path: Path) -> None:
    index = cut(bert)
    pretrained.load(str(bert))
    file = next(iter(index["weight_map"].values()))
    beside = {key: f"./{value}" for key, value in index["weight_map"].items()}
    (bert / pretrained.INDEX).write_text(json.dumps({"weight_map": beside}))
    pretrained.load(str(bert))
    away = (bert / file).rename(tmp_path / "away.safetensors")
    (bert / "linked.safetensors").symlink_to(away)
    torch.save(load_file(away), bert / "pytorch_model.bin")
    for named, says in (
        (str(away), "no file of the same folder; put a copy"),
        ("../away.safetensors", "no file of the same folder"),
        ("linked.safetensors", "no file of the same folder"),
        ("a\0.safetensors", "no file of the same folder"),
        ("pytorch_model.bin", r"not a \.safetensors file; such a file is opened only if you name it with --weights"),
        (["a"], "no weight_map with names of files"),
        (7, "no weight_map with names of files"),
    ):
        other = {"weight_map": {key: named if value == file else value for key, value in index["weight_map"].items()}}
        (bert / pretrained.INDEX).write_text(json.dumps(other))
        with pytest.raises(InputError, match=says):
            pretrained.load(str(bert))
    for broken in ([], {}, {"weight_map": [1]}):
        (bert / pretrained.INDEX).write_text(json.dumps(broken))
        with pytest.raises(InputError, match="no weight_map with names of files"):
            pretrained.load(str(bert))


def test_the_links_of_the_hubs_cache_are_followed(bert: Path, tmp_path: Path) -> None:
    """A snapshot holds links to ../../blobs."""
    cut(bert)
    snapshot, blobs = tmp_path / "models--a--b" / "snapshots" / "c0ffee", tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    bert.rename(blobs)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    pretrained.load(str(snapshot))


# ---------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x.long(), r"are not: pooler\.dense\.weight \(torch\.int64\)"),
        (lambda x: x > 0, r"are not: pooler\.dense\.weight \(torch\.bool\)"),
        (lambda x: x * torch.nan, r"NaN or infinite numbers: pooler\.dense\.weight"),
        (lambda x: (x + 1e300).double() * 1e300, r"NaN or infinite numbers: pooler\.dense\.weight"),
        (lambda x: x.sum(), r"makes \(\) where pooler\.weight has \(32, 32\)"),
    ],
)
def test_weights_that_are_no_finite_floating_point_numbers_are_refused(bert: Path, change, says: str) -> None:
    rewrite(bert, lambda tensors: tensors.update({"pooler.dense.weight": change(tensors["pooler.dense.weight"])}))
    with pytest.raises(InputError, match=says):
        pretrained.load(str(bert))


def test_parts_of_one_matrix_that_cannot_be_stacked_are_told(bert: Path) -> None:
    name = "encoder.layer.0.attention.self.query.weight"
    for wrong in (torch.zeros(32, 31), torch.zeros(())):
        rewrite(bert, lambda tensors, wrong=wrong: tensors.update({name: wrong}))
        with pytest.raises(InputError, match=rf"{name} \+ .* makes .* where .* has \(96, 32\)"):
            pretrained.load(str(bert))


def test_missing_and_unexpected_tensors_are_listed_together(bert: Path) -> None:
    def swap(tensors: dict) -> None:
        tensors["encoder.layer.1.attention.self.kye.weight"] = tensors.pop("encoder.layer.1.attention.self.key.weight")

    rewrite(bert, swap)
    with pytest.raises(
        InputError, match=r"Missing: encoder\.layer\.1\.attention\.self\.key\.weight\. Unexpected: .*kye"
    ):
        pretrained.load(str(bert))


def test_wrong_shapes_are_named_with_both_sizes(bert: Path) -> None:
    def shrink(tensors: dict) -> None:
        tensors["encoder.layer.0.output.dense.weight"] = torch.zeros(32, 47)

    rewrite(bert, shrink)
    with pytest.raises(
        InputError, match=r"encoder\.layer\.0\.output\.dense\.weight makes \(32, 47\) where .* has \(32, 48\)"
    ):
        pretrained.load(str(bert))


@pytest.mark.parametrize("kept", [0, 7, 200, -1000])
def test_a_file_cut_short_raises(bert: Path, kept: int) -> None:
    whole = (bert / pretrained.WEIGHTS).read_bytes()
    (bert / pretrained.WEIGHTS).write_bytes(whole[:kept])
    with pytest.raises(InputError, match=r"model\.safetensors is damaged or cut short"):
        pretrained.load(str(bert))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"model_type": "roberta"}', "architecture 'roberta'; rtx, bert, modernbert are understood"),
        ('{"model_type": "brt"}', "Did you mean 'bert'"),
        ("{}", "architecture None"),
        ("{not json", "is not JSON"),
    ],
)
def test_an_unknown_architecture_raises(bert: Path, text: str, says: str) -> None:
    (bert / "config.json").write_text(text)
    with pytest.raises(InputError, match=says):
        pretrained.load(str(bert))


def test_an_unknown_pooling_raises(bert: Path) -> None:
    modules = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (bert / "modules.json").write_text(json.dumps(modules))
    (bert / "1_Pooling").mkdir()
    (bert / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(InputError, match="pooling_mode_max_tokens; only"):
        pretrained.load(str(bert))
    (bert / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]))
    with pytest.raises(InputError, match="Dense module"):
        pretrained.load(str(bert))


POOLING = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("modules.json", {"0": POOLING[0]}, "modules.json is no list of modules with a type each"),
        ("modules.json", [{"path": "1_Pooling"}], "modules.json is no list of modules with a type each"),
        ("modules.json", ["Pooling"], "modules.json is no list of modules"),
        ("modules.json", [{"type": 3}], "modules.json is no list of modules"),
        ("modules.json", [{"type": "x.Pooling"}], "None holds no config.json"),
        ("1_Pooling/config.json", ["mean"], r"1_Pooling.config.json holds no named values"),
        ("sentence_bert_config.json", [256], "sentence_bert_config.json holds no named values"),
        ("sentence_bert_config.json", {"max_seq_length": "long"}, "max_seq_length"),
    ],
)
def test_odd_files_about_pooling_are_one_sentence(bert: Path, file: str, content: object, says: str) -> None:
    (bert / "1_Pooling").mkdir()
    whole = {"modules.json": POOLING, "1_Pooling/config.json": {"pooling_mode_mean_tokens": True}}
    for name, value in {**whole, file: content}.items():
        (bert / name).write_text(json.dumps(value))
    with pytest.raises(InputError, match=says) as told:
        pretrained.load(str(bert))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere", "There is no folder nowhere"),
        ("/nowhere/at/all", "There is no folder /nowhere"),
        ("../nowhere", "There is no folder"),
    ],
)
def test_a_source_that_does_not_exist_raises(source: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        pretrained.load(source)


def test_a_fetched_model_is_found_offline(hub: str, tmp_path: Path) -> None:
    code = "from rtxlib.models import pretrained; print(pretrained.find('sentence-transformers/all-MiniLM-L6-v2'))"
    own = os.environ | {"HF_HOME": str(tmp_path)}
    first, again = (
        subprocess.run([sys.executable, "-c", code], env=own | more, capture_output=True, text=True, timeout=120)
        for more in ({}, {"HF_HUB_OFFLINE": "1"})
    )
    assert again.returncode == 0, again.stderr
    assert first.stdout == again.stdout and str(tmp_path) in again.stdout


def test_a_model_that_the_hub_lacks_or_whose_weights_it_lacks_raises(hub: str) -> None:
    with pytest.raises(InputError, match="has no model sentence-transformers/all-MiniLM-L9-v2"):
        pretrained.load("sentence-transformers/all-MiniLM-L9-v2")
    with pytest.raises(InputError, match=r"holds no model\.safetensors, so there are no weights"):
        pretrained.load("answerdotai/ModernBERT-base")


def test_an_empty_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no config\.json"):
        pretrained.load(str(tmp_path))


def test_other_weights_are_another_version(bert: Path) -> None:
    before = pretrained.version(str(bert))
    assert pretrained.version(str(bert)) == before
    rewrite(bert, lambda tensors: tensors["pooler.dense.bias"].add_(1))
    assert pretrained.version(str(bert)) != before


def test_another_pooling_is_another_version(bert: Path) -> None:
    """It decides the embeddings as the weights do. A card decides nothing."""
    (bert / "1_Pooling").mkdir()
    (bert / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    before = pretrained.version(str(bert))
    (bert / "README.md").write_text("a card")
    assert pretrained.version(str(bert)) == before
    (bert / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert pretrained.version(str(bert)) != before


# ---------------------------------------- saving, and other libraries


@torch.inference_mode()
@pytest.mark.parametrize("name", ["bert-tiny", "minilm-l3", "minilm-l6", "modernbert-base"])
def test_transformers_opens_what_we_save_without_this_package(name: str, tmp_path: Path, ids: torch.Tensor) -> None:
    small = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 4, "intermediate_size": 48}
    torch.manual_seed(0)
    ours = Encoder(preset(name, vocab_size=40, pad_token_id=0, **small)).eval()
    pretrained.save(ours, tmp_path / "saved")
    opened = AutoModel.from_pretrained(tmp_path / "saved").eval()
    assert not isinstance(opened, Encoder)
    assert_near(opened(ids).last_hidden_state, ours(ids).last_hidden_state)
    again = pretrained.load(str(tmp_path / "saved"))
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), ours.parameters(), strict=True))
    if ours.config.pooling == "mean":
        assert (again.config.pooling, again.config.normalize) == ("mean", name != "minilm-l3")
    with pytest.raises(InputError, match="exists already"):
        pretrained.save(ours, tmp_path / "saved")


def test_sentence_transformers_opens_a_minilm_that_we_save(hub: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    tokenizer = tokenization.pretrained_tokenizer(pretrained.find(MINILM))
    pretrained.save(pretrained.load(MINILM), tmp_path / "minilm", tokenizer)
    texts = ["This is a sample sentence.", "Another example text.", "long " * 400]
    ours, theirs = SentenceTransformer(str(tmp_path / "minilm")), SentenceTransformer(MINILM)
    assert ours.max_seq_length == theirs.max_seq_length == 256
    assert_near(ours.encode(texts), theirs.encode(texts))
    loop = to_loop(pretrained.load(MINILM), layers=3, passes=2)
    pretrained.save(loop, tmp_path / "loop", tokenizer)
    opened = SentenceTransformer(str(tmp_path / "loop"))
    assert_near(opened.encode(texts), embed(texts, loop, tokenizer))


def test_an_exported_folder_carries_checksums_which_are_compared(tmp_path: Path) -> None:
    tokenizer = tokenization.train(["a fine film", "a dull film"] * 3, 70)
    ours = Encoder(preset("minilm-l3", **SIZES | {"vocab_size": len(tokenizer), "pad_token_id": 0}))
    saved = tmp_path / "saved"
    pretrained.save(ours, saved, tokenizer)
    assert subprocess.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=saved, capture_output=True).returncode == 0
    pretrained.load(str(saved))
    (saved / "README.md").write_text("A file beside them is no damage.")
    pretrained.load(str(saved))
    files = {line.split("  ")[1] for line in (saved / "SHA256SUMS").read_text().splitlines()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "modules.json", "1_Pooling/config.json"} <= files
    for name in sorted(files):
        whole = (saved / name).read_bytes()
        (saved / name).write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
        with pytest.raises(InputError, match=rf"saved is damaged \({name} .*\): copy or save it again"):
            pretrained.load(str(saved))
        (saved / name).unlink()
        with pytest.raises(InputError, match=rf"saved is damaged \(it has no {name}\)"):
            pretrained.load(str(saved))
        (saved / name).write_bytes(whole)
    (saved / pretrained.INDEX).write_text("{}")
    with pytest.raises(InputError, match=rf"damaged \({pretrained.INDEX} was added to it\)"):
        pretrained.load(str(saved))
    (saved / pretrained.INDEX).unlink()
    (saved / "SHA256SUMS").write_text("")
    with pytest.raises(InputError, match="damaged"):
        pretrained.load(str(saved))
    (saved / "SHA256SUMS").unlink()
    pretrained.load(str(saved))


def test_a_stack_that_is_no_bert_is_not_saved_as_one(tmp_path: Path) -> None:
    ours = build("standard-2x32", vocab_size=40).encoder.eval()
    pretrained.save(ours, tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_type"] == "rtx"
    ids = torch.arange(5, 12)[None]
    again = pretrained.load(str(tmp_path / "ours"))
    assert torch.equal(again(ids).last_hidden_state, ours(ids).last_hidden_state)


@torch.inference_mode()
@pytest.mark.parametrize("name", ["bert-tiny", "minilm-l3", "modernbert-base", "standard-2x64", "recurrent-2x2x64"])
def test_auto_classes_and_pipeline_open_every_encoder(name: str, tmp_path: Path) -> None:
    texts = ["a fine film", "a dull film", "so dull , so long , so sad"]
    tokenizer = tokenization.train(texts * 3, 100)
    small = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 48}
    changes = {} if name.startswith(("standard", "recurrent")) else small
    model = build(name, vocab_size=len(tokenizer), pad_token_id=0, num_labels=3, **changes).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    assert_near(opened(**batch).logits, model(**batch).logits)
    assert isinstance(AutoModel.from_pretrained(tmp_path), Encoder)
    answers = pipeline("text-classification", str(tmp_path), top_k=None)(texts)
    expected = model(**batch).logits.softmax(dim=-1).max(dim=-1).values
    assert [answer[0]["score"] for answer in answers] == pytest.approx(expected.tolist(), abs=1e-5)
    shown = opened(**batch, output_attentions=True, output_hidden_states=True)
    depth = model.config.effective_depth
    assert len(shown.attentions) == depth and len(shown.hidden_states) == depth + 1
    assert shown.attentions[0].shape == (3, model.config.num_attention_heads, *batch["input_ids"].shape[1:] * 2)


@pytest.mark.parametrize("name", ["recurrent-1x2x32", "bert-tiny"])
def test_trainer_trains_our_models(name: str, tmp_path: Path) -> None:
    """transformers' Trainer lowers the loss on two words with two labels, and AutoModel opens what it saves."""
    rows = [{"input_ids": [2, 5 + i % 2, 7, 3], "attention_mask": [1] * 4, "labels": i % 2} for i in range(64)]
    model = AutoModelForSequenceClassification.from_config(preset(name, vocab_size=10, num_hidden_layers=1))
    arguments = TrainingArguments(
        str(tmp_path), per_device_train_batch_size=16, max_steps=40, learning_rate=5e-3, report_to=[], use_cpu=True,
        disable_tqdm=True, save_strategy="no", logging_steps=40,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=rows)
    before = trainer.evaluate(rows)["eval_loss"]
    trainer.train()
    assert trainer.evaluate(rows)["eval_loss"] < 0.2 * before
    trainer.save_model(str(tmp_path / "kept"))
    assert isinstance(AutoModelForSequenceClassification.from_pretrained(tmp_path / "kept").config, ModelConfig)
