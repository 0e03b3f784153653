"""Train the two small models with which the transformer page opens, and write them into it.

    python -m rtxstudy.pages.train_weights

``sentiment`` is the study's recurrent classifier, small: one layer that is passed three times. It learns the polarity of
generated sentences on films, and is graded after every pass. ``reversal`` is the encoder–decoder of "Attention Is All
You Need", small: it learns to write a row of letters backwards. The weights are rounded to 16 bits before they are scored,
so the accuracy in the file is that of the weights in the file. One thread and one seed give the same file on one machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx.beam_search import decode
from rtxlib.atomic import replacing
from rtxlib.data import synthetic
from rtxlib.models import EncoderDecoder, EncoderForSequenceClassification, ModelConfig
from rtxlib.models.encoder import EncoderBase
from rtxstudy.pages import static, weights

COMMAND = "python -m rtxstudy.pages.train_weights"
FILE = static.HERE / "transformer" / "trained.js"
PAD, UNK, CLS, SEP = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = ("[PAD]", "<s>", "</s>", "[UNK]", *"abcdefgh")  # [UNK] is reversed like any other letter
BOS, EOS = LETTERS.index("<s>"), LETTERS.index("</s>")

# What is learned, for how long, and from how much. The page shows these numbers.
SENTIMENT: dict[str, int] = {"train": 12_000, "held_out": 2_000, "depth": 4, "steps": 1_500, "batch": 64}
REVERSAL: dict[str, int] = {"fewest": 3, "most": 7, "held_out": 2_000, "steps": 1_500, "batch": 64}
GRADES = (0.1, 0.3, 0.6)  # the weight of each pass in the loss; the page shows a label after each
CLASSIFIER = ModelConfig(
    hidden_size=16,
    num_attention_heads=2,
    num_hidden_layers=1,
    intermediate_size=32,
    recurrent_depth=len(GRADES),
    max_position_embeddings=128,
    type_vocab_size=0,
    embedding_norm=False,
    final_norm=True,
    hidden_dropout=0.0,
    attention_dropout=0.0,
    classifier_dropout=0.0,
    initializer_range=0.2,
)
TRANSLATOR = ModelConfig(
    vocab_size=len(LETTERS),
    hidden_size=16,
    num_attention_heads=2,
    num_hidden_layers=1,
    num_decoder_layers=1,
    intermediate_size=32,
    max_position_embeddings=128,
    type_vocab_size=0,
    position="sinusoidal",
    embedding_scale=True,
    embedding_norm=False,
    norm="layernorm",
    norm_placement="post",
    norm_eps=1e-5,
    feedforward="relu",
    hidden_dropout=0.0,
    attention_dropout=0.0,
    initializer_range=0.2,
)


# ---------------------------------------- the texts


def lexicon() -> dict[str, Any]:
    """The generator's words on films, without proper names: they would fill the page's vocabulary and decide nothing."""
    named = re.compile(r"\{name\}|\b(?!I\b)[A-Z]")
    lists = synthetic.WORDS["movies"]
    return {key: tuple(entry for entry in entries if not (isinstance(entry, str) and named.search(entry)))
            for key, entries in lists.items()}  # fmt: skip


def sentences(rows: int, seed: int, depth: int) -> tuple[list[str], Tensor]:
    """Distinct sentences, each one verdict under 0 to ``depth`` operators, and their labels (rows,), 0 or 1 in turn."""
    lists = lexicon()
    _, pick = synthetic.stream(np.random.Generator(np.random.PCG64(seed)))
    labels: dict[str, int] = {}
    while len(labels) < rows:
        label = len(labels) % 2
        tree = synthetic.grow(2 * label - 1, pick(range(depth + 1)), "verdict", lists, pick)
        text = synthetic.fill(pick(lists["opening"]) + tree.pattern, lists, pick, tree) + pick(("", "", ".", "!"))
        labels.setdefault(" ".join(words(text)), label)
    return list(labels), torch.tensor(list(labels.values()))


def words(text: str) -> list[str]:
    """The words and signs of a generated text, as the page's WordPiece splits it."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


def numbered(texts: list[str], vocabulary: list[str]) -> Tensor:
    """Token ids (texts, longest text), [CLS] first and [SEP] last, padded with 0."""
    number_of = {word: number for number, word in enumerate(vocabulary)}
    rows = [
        torch.tensor([number_of[CLS], *(number_of.get(word, number_of[UNK]) for word in text.split()), number_of[SEP]])
        for text in texts
    ]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def reversals(rows: int, held_out: bool, generator: torch.Generator, sizes: dict[str, int]) -> dict[str, Tensor]:
    """Random sources and, as targets, the same backwards. Sources whose ids sum to a multiple of 5 are held out."""
    fewest, most = sizes["fewest"], sizes["most"]
    lengths = torch.randint(fewest, most + 1, (8 * rows,), generator=generator)
    place = torch.arange(most)
    real = place < lengths[:, None]
    source = torch.randint(EOS + 1, len(LETTERS), real.shape, generator=generator) * real
    chosen = ((source.sum(1) % 5 == 0) == held_out).nonzero().flatten()[:rows]
    source, real, lengths = source[chosen], real[chosen], lengths[chosen]
    backwards = source.gather(1, (lengths[:, None] - 1 - place).clamp(min=0)) * real
    labels = F.pad(backwards, (0, 1)).scatter(1, lengths[:, None], EOS)  # the end, after the last letter
    return {
        "input_ids": source,
        "attention_mask": real.long(),
        "decoder_input_ids": F.pad(backwards, (1, 0), value=BOS),
        "labels": labels.masked_fill(labels == 0, -100),
    }


# ---------------------------------------- training


def learn(model: EncoderBase, steps: int, rate: float, loss: Callable[[], Tensor]) -> None:
    """Minimise ``loss()``, of a batch of its own at every call, by AdamW. The rate rises, then falls to zero."""
    warm_up = max(1, steps // 20)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, (steps - step) / max(1, steps - warm_up))
    )
    model.train()
    for step in range(steps):
        value = loss()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if (step + 1) % 500 == 0:
            click.echo(f"step {step + 1:,} of {steps:,}: loss {value.item():.3f}")
    model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())


def after_each_pass(model: EncoderForSequenceClassification, ids: Tensor, mask: Tensor | None = None) -> list[Tensor]:
    """The logits (texts, labels) after each pass. ids: (texts, length); mask: the same shape, 0 at padding."""
    states = model.encoder(ids, mask, output_hidden_states=True).pass_states[1:]
    context = model.encoder.context(ids.shape[1], mask, ids.device)
    return [model.decode(state, mask, context) for state in states]


def sentiment(seed: int, sizes: dict[str, int] = SENTIMENT) -> dict[str, Any]:
    """The trained classifier as the page has it."""
    texts, labels = sentences(sizes["train"] + sizes["held_out"], seed, sizes["depth"])
    train_words = sorted({word for text in texts[: sizes["train"]] for word in text.split()})
    vocabulary = [*SPECIAL, *train_words]
    ids = numbered(texts, vocabulary)
    torch.manual_seed(seed)
    config = ModelConfig(**(CLASSIFIER.to_diff_dict() | {"vocab_size": len(vocabulary)}))
    model = EncoderForSequenceClassification(config)
    draw = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(sizes["train"], (sizes["batch"],), generator=draw)
        mask = ids[rows].ne(0).long()
        longest = int(mask.sum(1).max())
        outputs = after_each_pass(model, ids[rows, :longest], mask[:, :longest])
        return sum(grade * F.cross_entropy(logits, labels[rows]) for grade, logits in zip(GRADES, outputs, strict=True))

    learn(model, sizes["steps"], 6e-3, loss)
    unseen = slice(sizes["train"], None)
    record = sizes | {"parameters": parameters(model), "accuracy": graded(model, ids[unseen], labels[unseen])}
    return packed(model, vocabulary, ["negative", "positive"]) | {"made": record}


@torch.no_grad()
def graded(model: EncoderForSequenceClassification, ids: Tensor, labels: Tensor) -> list[float]:
    """The share of texts with the right label, after each pass."""
    outputs = after_each_pass(model, ids, ids.ne(0).long())
    return [round(logits.argmax(1).eq(labels).double().mean().item(), 4) for logits in outputs]


def reversal(seed: int, sizes: dict[str, int] = REVERSAL) -> dict[str, Any]:
    """The trained encoder–decoder as the page has it."""
    torch.manual_seed(seed)
    model = EncoderDecoder(TRANSLATOR)
    draw = torch.Generator().manual_seed(seed)
    learn(model, sizes["steps"], 4e-3, lambda: model(**reversals(sizes["batch"], False, draw, sizes)).loss)
    record = sizes | {"parameters": parameters(model), "accuracy": [reversed_right(model, sizes, seed + 1)]}
    return packed(model, list(LETTERS), None) | {"made": record}


def reversed_right(model: EncoderDecoder, sizes: dict[str, int], seed: int) -> float:
    """The share of held-out sources that the model, decoding greedily, reverses without any mistake."""
    unseen = reversals(sizes["held_out"], True, torch.Generator().manual_seed(seed), sizes)
    ends = {"bos_id": BOS, "eos_id": EOS, "max_new_tokens": sizes["most"] + 2}
    answers = decode(model, unseen["input_ids"], unseen["attention_mask"], **ends)
    targets = [[letter for letter in row if letter > EOS] for row in unseen["labels"].tolist()]
    return round(sum(one.ids == ids for one, ids in zip(answers, targets, strict=True)) / len(targets), 4)


# ---------------------------------------- the file


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def packed(model: EncoderBase, vocabulary: list[str], labels: list[str] | None) -> dict[str, Any]:
    """A model in the form in which the page has weights (:func:`rtxstudy.pages.weights.packed`)."""
    settings = {"config": weights.configuration(model.config), "words": vocabulary, "lowercase": True, "labels": labels}
    return settings | weights.written(weights.tensors(model), "float16")


def module(seed: int, models: dict[str, dict[str, Any]]) -> str:
    """The ES module that holds the models."""
    command = f"{COMMAND} --seed {seed}"
    lines = [f"// Made by `{command}`. The next call writes over changes to this file.", ""]
    lines += ["/** The models with which the page opens; `made` says from what and how well each one learned. */"]
    lines += ["export const TRAINED = {", f"  seed: {seed},", f"  command: {json.dumps(command)},"]
    lines += [line for name, model in models.items() for line in written(name, model)]
    return "\n".join([*lines, "};", ""])


def written(name: str, model: dict[str, Any]) -> Iterator[str]:
    """One line for each part of a model."""
    yield f"  {name}: {{"
    for key, value in model.items():
        yield f"    {key}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))},"
    yield "  },"


def shipped(name: str) -> tuple[EncoderBase, dict[str, Any]]:
    """The trained model ``name`` ("sentiment" or "reversal") of the page's file, and its record there.

    The record has ``config``, ``words``, ``labels`` and ``made`` as :func:`sentiment` and :func:`reversal` return them.
    """
    block = re.search(rf"^  {name}: {{\n(.*?)^  }},$", FILE.read_text(encoding="utf-8"), re.M | re.S)[1]
    record = {key: json.loads(value) for key, value in re.findall(r"^    (\w+): (.*),$", block, re.M)}
    base, kind = {
        "sentiment": (CLASSIFIER, EncoderForSequenceClassification),
        "reversal": (TRANSLATOR, EncoderDecoder),
    }[name]
    model = kind(ModelConfig(**(base.to_diff_dict() | {"vocab_size": len(record["words"])})))
    weights.read_into(model, record)
    return model.eval(), record


@click.command()
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the texts and of the first weights."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=FILE, help="The file.  [default: the page's]"
)
def main(seed: int, out: Path) -> None:
    """Train the models of the transformer page and write them into it; a minute or two on one core."""
    torch.set_num_threads(1)
    text = module(seed, {"sentiment": sentiment(seed), "reversal": reversal(seed)})
    with replacing(out) as path:
        path.write_text(text, encoding="utf-8")
    click.echo(f"{out}: {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
