"""The transformer page computes what torch computes: Node runs its modules on weights and numbers of rtxlib's own models."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rtxlib.data.tokenization import train
from rtxlib.models import EncoderDecoder, EncoderForSequenceClassification, ModelConfig
from rtxlib.models.encoder import EncoderBase
from rtxstudy.pages import train_weights, weights
from rtxstudy.pages.train_weights import after_each_pass

SIZES = {
    "vocab_size": 11,
    "hidden_size": 12,
    "num_attention_heads": 3,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "max_position_embeddings": 16,
    "attention_dropout": 0.0,
    "activation_dropout": 0.3,
    "hidden_dropout": 0.3,
}
PAPER = {"num_decoder_layers": 2, "type_vocab_size": 0, "embedding_norm": False, "embedding_scale": True}
PAPER |= {
    "norm": "layernorm",
    "norm_eps": 1e-5,
    "norm_placement": "post",
    "position": "sinusoidal",
    "feedforward": "relu",
}
LOOP = {"recurrent_depth": 3, "residual_scale": 0.3}
CASES: dict[str, dict[str, Any]] = {
    "the paper's model": PAPER,
    "pre-norm": PAPER | {"norm_placement": "pre", "final_norm": True},
    "RoPE": PAPER | {"position": "rotary", "num_attention_heads": 2},
    "no positions": PAPER | {"position": "none"},
    "GELU": PAPER | {"feedforward": "gelu"},
    "SwiGLU and RMSNorm": PAPER | {"feedforward": "swiglu", "norm": "rmsnorm"},
    "recurrence in an encoder–decoder": PAPER | LOOP,
    "the study's classifier": LOOP | {"num_attention_heads": 2},
    "a residual from the first pass on": LOOP | {"num_attention_heads": 2, "residual": "every"},
    "a damped residual": LOOP | {"num_attention_heads": 2, "residual": "damped"},
    "a learned residual, read by the mean": LOOP | {"num_attention_heads": 2, "residual": "learned", "pooling": "mean"},
    "blocks of their own": LOOP | {"num_attention_heads": 2, "block_sharing": "unshared", "residual": "none"},
    "ALiBi and GeGLU without biases": {"position": "alibi", "feedforward": "geglu", "bias": False},
    "BERT": {
        "position": "learned",
        "norm": "layernorm",
        "norm_placement": "post",
        "feedforward": "gelu",
        "pooler": True,
    }
    | {"pooling": "pooler", "norm_eps": 1e-5},
}
DROPPED = ("the paper's model", "pre-norm", "SwiGLU and RMSNorm", "the study's classifier")  # also with dropout on


def made(config: ModelConfig, dtype: torch.dtype) -> EncoderBase:
    """A model every parameter of which is away from its start, so that none is a plain 0 or 1."""
    torch.manual_seed(0)
    model = (EncoderDecoder if config.num_decoder_layers else EncoderForSequenceClassification)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.to(dtype).eval()


class Mask(nn.Module):
    """In place of a dropout: multiplies by a mask of its own and keeps it in ``drawn``, in the order of the calls."""

    def __init__(self, rate: float, drawn: list[Tensor]) -> None:
        super().__init__()
        self.rate, self.drawn = rate, drawn

    def forward(self, x: Tensor) -> Tensor:
        mask = (torch.rand_like(x) >= self.rate) / (1 - self.rate)
        self.drawn.append(mask)
        return x * mask


def mask_names(config: ModelConfig) -> Iterator[str]:
    """The page's names of a model's masks, in the order in which torch draws them."""
    yield "encoder/mask"
    for one, layer in itertools.product(range(config.recurrent_depth), range(config.num_hidden_layers)):
        for part in ("attention", "feedforward/inner", "feedforward"):
            yield f"encoder/{one}/{layer}/{part}/mask"
    if config.num_decoder_layers:
        yield "decoder/mask"
    for layer in range(config.num_decoder_layers):
        for part in ("attention", "cross", "feedforward/inner", "feedforward"):
            yield f"decoder/0/{layer}/{part}/mask"


def packed(model: EncoderBase, dtype: str = "float32") -> dict[str, Any]:
    config = weights.configuration(model.config)
    return {"config": config, "words": [], "labels": None} | weights.written(weights.tensors(model), dtype)


def case(name: str, settings: dict[str, Any], dtype: torch.dtype, dropped: bool) -> dict[str, Any]:
    """A model, a text, the masks, and every number that torch shows of its way through it."""
    return judged(name, made(ModelConfig(**(SIZES | settings)), dtype), [3, 7, 1, 7, 10], [1, 4, 9, 2], dropped)


def judged(name: str, model: EncoderBase, ids: list[int], begun: list[int], dropped: bool = False) -> dict[str, Any]:
    """A model, a source and a target, and every number that torch shows of its way through them."""
    config = model.config
    source, target = torch.tensor([ids]), torch.tensor([begun])
    drawn: list[Tensor] = []
    if dropped:
        model.encoder.embeddings.dropout = Mask(0.3, drawn)
        decoder = getattr(model, "decoder", ())
        for layer in (*(layer for block in model.encoder.stack.blocks for layer in block), *decoder):
            layer.dropout, layer.feedforward.dropout = Mask(0.3, drawn), Mask(0.3, drawn)
    with torch.no_grad():
        encoded: dict[str, Any] = {}
        model.encoder.register_forward_hook(lambda module, given, output: encoded.update(output))
        given = (source, target) if config.num_decoder_layers else (source,)
        output = model(*given, output_attentions=True, output_hidden_states=True)
        exits = [] if config.num_decoder_layers or dropped else after_each_pass(model, source)
    show = {"logits": output.logits[0], "probabilities": output.logits[0].softmax(-1)}
    places = itertools.product(range(config.recurrent_depth), range(config.num_hidden_layers))
    for (one, layer), attention in zip(places, encoded["attentions"], strict=True):
        show |= {f"encoder/{one}/{layer}/attention/weights/{head}": x for head, x in enumerate(attention[0])}
    show |= {f"iteration {number}": state[0] for number, state in enumerate(encoded["pass_states"])}
    if config.num_decoder_layers:
        last = "sum" if config.norm_placement == "pre" else "normed"
        for layer in range(config.num_decoder_layers):
            show |= {
                f"decoder/0/{layer}/attention/weights/{h}": x for h, x in enumerate(output.decoder_attentions[layer][0])
            }
            show |= {f"decoder/0/{layer}/cross/weights/{h}": x for h, x in enumerate(output.cross_attentions[layer][0])}
            show[f"decoder/0/{layer}/feedforward/{last}"] = output.decoder_hidden_states[layer + 1][0]
    if exits:
        show["passes"] = torch.stack([logits[0].softmax(-1) for logits in exits])
    row = {"logits", "probabilities"} if not config.num_decoder_layers else set()
    names = list(mask_names(config)) if dropped else []
    return {
        "name": name,
        "model": packed(model),
        "source": source[0].tolist(),
        "target": target[0].tolist(),
        "masks": {n: mask[0].tolist() for n, mask in zip(names, drawn, strict=True)} if dropped else None,
        "expected": {n: [x.tolist()] if n in row else x.tolist() for n, x in show.items()},
    }


def trained() -> Iterator[dict[str, Any]]:
    """The page's own models, in double precision, on texts of theirs."""
    model, record = train_weights.shipped("sentiment")
    for text in ("the film was dull", "nobody can claim that this drama was not witty , but it annoyed me"):
        ids = [
            record["words"].index(word) if word in record["words"] else 1 for word in ["[CLS]", *text.split(), "[SEP]"]
        ]
        yield judged(f"the trained classifier: {text}", model.double(), ids, [])
    model, record = train_weights.shipped("reversal")
    ids, begun = ([record["words"].index(letter) for letter in letters] for letters in ([*"faced"], ["<s>", *"dec"]))
    yield judged("the trained encoder–decoder", model.double(), ids, begun)


def halves() -> dict[str, Any]:
    """Every kind of sixteen-bit number: normal, subnormal, zero, the largest."""
    values = np.array([[0.0, 1.0, -1.5, 65504.0, 6.0e-8, -3.0e-5, 0.333, -2.0e-4]], np.float16)
    written = weights.written({"table": torch.from_numpy(values)}, "float16")
    return {"packed": {"config": {}, "words": [], "labels": None} | written, "values": values.astype(float).tolist()}


def sentences() -> dict[str, Any]:
    """What the tokenizer makes of plain and of strange texts."""
    texts = ["the film was not dull at all .", "An unforgettable, well-acted café scene!", "<b>bold</b> & 3.5 stars"]
    tokenizer = train(texts, 120)
    strange = [
        *texts,
        "",
        "   ",
        "naïve ÉCLAIR",
        "日本語 text",
        "🎬 film",
        "x" * 120,
        "it's\ta\u0000 film\u200d.",
        "ﬁlm",
        "مرحبا film",
    ]
    backend = tokenizer.backend_tokenizer
    encoded = [backend.encode(text) for text in strange]
    words = [word for word, _ in sorted(backend.get_vocab().items(), key=lambda pair: pair[1])]
    cases = [{"sentence": s, "tokens": e.tokens, "ids": e.ids} for s, e in zip(strange, encoded, strict=True)]
    return {"words": words, "lowercase": True, "cases": cases}


def test_node_finds_every_number_as_torch_does(node: str, tmp_path: Path) -> None:
    models = [case(name, settings, torch.float64, False) for name, settings in CASES.items()]
    models += [case(f"{name}, in float32", CASES[name], torch.float32, False) for name in DROPPED]
    models += [case(f"{name}, with dropout", CASES[name], torch.float64, True) for name in DROPPED]
    models += trained()
    fixtures = tmp_path / "fixtures.json"
    fixtures.write_text(json.dumps({"models": models, "halves": halves(), "pieces": sentences()}), encoding="utf-8")
    script = Path(__file__).parent / "js" / "transformer.test.mjs"
    environment = os.environ | {"RTX_FIXTURES": str(fixtures)}
    ran = subprocess.run([node, "--test", script], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert ran.stdout.count("every number on the way is torch's\nok ") == len(models), ran.stdout[-2000:]
