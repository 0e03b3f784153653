"""The trained weights in the transformer page are what the command writes, and do as well as the page says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from test_figures import on_its_page, refuses

from rtxlib.errors import InputError
from rtxstudy.pages import passes, static, weights
from rtxstudy.pages import train_weights as command
from rtxstudy.questions.passes.strip_figures import alt, passes_strip

SMALL = {
    "sentiment": command.SENTIMENT | {"train": 64, "held_out": 16, "steps": 3, "batch": 8},
    "reversal": command.REVERSAL | {"held_out": 8, "steps": 3, "batch": 8},
}


def made(seed: int) -> str:
    return command.module(
        seed,
        {
            "sentiment": command.sentiment(seed, SMALL["sentiment"]),
            "reversal": command.reversal(seed, SMALL["reversal"]),
        },
    )


def test_one_seed_makes_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    once = made(0)
    assert once == made(0) != made(1)
    monkeypatch.setattr(command, "SENTIMENT", SMALL["sentiment"])
    monkeypatch.setattr(command, "sentiment", lambda seed: {"made": SMALL["sentiment"], "words": []})
    monkeypatch.setattr(command, "reversal", lambda seed: {"made": SMALL["reversal"], "words": []})
    done = CliRunner().invoke(command.main, ["--seed", "3", "--out", str(tmp_path / "trained.js")])
    assert done.exit_code == 0, done.output
    assert "`python -m rtxstudy.pages.train_weights --seed 3`" in (tmp_path / "trained.js").read_text()


@pytest.mark.parametrize("name", ["sentiment", "reversal"])
def test_the_page_s_weights_are_those_of_the_command_and_as_good_as_it_says(name: str) -> None:
    sizes = {"sentiment": command.SENTIMENT, "reversal": command.REVERSAL}[name]
    model, record = command.shipped(name)
    assert record["made"].items() >= sizes.items() and record["made"]["parameters"] == command.parameters(model)
    assert (command.FILE.read_text().splitlines()[0]) == (
        "// Made by `python -m rtxstudy.pages.train_weights --seed 0`. The next call writes over changes to this file."
    )
    if name == "sentiment":
        texts, labels = command.sentences(sizes["train"] + sizes["held_out"], 0, sizes["depth"])
        assert (
            weights.configuration(model.config)["recurrent_depth"]
            == len(command.GRADES)
            == len(record["made"]["accuracy"])
        )
        ids = command.numbered(texts[sizes["train"] :], record["words"])
        found = command.graded(model, ids, labels[sizes["train"] :])
    else:
        found = [command.reversed_right(model, sizes, 1)]
    assert found == pytest.approx(record["made"]["accuracy"], abs=0.002)  # another machine rounds differently
    assert found[-1] > 0.95


def test_generated_sentences_have_their_true_label_and_none_is_twice() -> None:
    texts, labels = command.sentences(400, 0, 2)
    assert len({*texts}) == 400 and labels.sum() == 200
    lists = command.lexicon()
    plain = (
        r"(?:[^,]* , )?the [a-z ]+ (?:was|were) (?:(?:really|very|truly|quite|rather|pretty|so) )?([a-z]+)(?: [.!])?"
    )
    last = [re.fullmatch(plain, text) for text in texts]  # nothing in such a sentence turns its last word
    judged = [(one[1], label) for one, label in zip(last, labels.tolist(), strict=True) if one]
    judged = [(word, label) for word, label in judged if word in lists["adjective+"] + lists["adjective-"]]
    assert len(judged) > 20 and all((word in lists["adjective+"]) == label for word, label in judged)
    assert not any(word in command.SPECIAL for text in texts for word in text.split())
    ids = command.numbered(["the film", "zzz"], [*command.SPECIAL, "film", "the"])
    assert ids.tolist() == [[2, 5, 4, 3], [2, 1, 3, 0]]


def test_a_reversal_is_its_source_backwards_and_held_out_sources_stay_out() -> None:
    for held_out in (True, False):
        batch = command.reversals(50, held_out, torch.Generator().manual_seed(0), command.REVERSAL)
        for source, label, begun in zip(batch["input_ids"], batch["labels"], batch["decoder_input_ids"], strict=True):
            letters = source[source > 0].tolist()
            assert label[label >= 0].tolist() == [*letters[::-1], command.EOS]
            assert begun[: len(letters) + 1].tolist() == [command.BOS, *letters[::-1]]
            assert (sum(letters) % 5 == 0) == held_out


# ---------------------------------------- the strip of passes

TURNED = "nobody can claim that the film was not dull"
# What the page computes: the probabilities after each pass, and the first row of each head's attention weights in each pass.
IN_THE_PAGE = """
Promise.all([import("STATE"), import("MODEL")]).then(([{ complete }, { compute }]) => {
  const { values } = compute(complete({ tokens: SENTENCE }));
  const row = (name) => [...values.get(name).data.subarray(0, values.get(name).cols)];
  const heads = [0, 1, 2].map((pass) => [0, 1].map((head) => row(`encoder/${pass}/0/attention/weights/${head}`)));
  console.log(JSON.stringify({ passes: [...values.get("passes").data], heads }));
});
"""


def test_the_strip_shows_what_the_page_computes(node: str) -> None:
    folder = static.HERE / "transformer"
    code = IN_THE_PAGE.replace("STATE", (folder / "state.js").as_uri()).replace("MODEL", (folder / "model.js").as_uri())
    shown = json.loads(subprocess.check_output([node, "-e", code.replace("SENTENCE", json.dumps(TURNED))]))
    table = passes.answers(TURNED)
    assert list(table.drop_duplicates("place")["word"]) == TURNED.split()
    assert table.groupby("pass")["positive"].first().tolist() == pytest.approx(shown["passes"][1::2], abs=1e-5)
    mean = torch.tensor(shown["heads"]).mean(1)[:, 1:-1]  # without [CLS] and [SEP]
    assert table["attention"].tolist() == pytest.approx(mean.flatten().tolist(), abs=1e-5)
    assert (table.groupby("pass")["attention"].sum() < 1).all()


def test_the_strip_is_a_figure_of_the_study() -> None:
    long = "although my uncle was gripped , nobody can deny that the film was not a masterpiece and not witty ."
    for sentence in (TURNED, long):
        table = passes.answers(sentence)
        figure, texts = on_its_page(lambda table=table: passes_strip(table))
        words = [text.get_text() for text in texts]
        assert [word for word in words if word in sentence.split()] == 3 * sentence.split()
        assert sum(word.startswith("pass ") for word in words) == 3
        assert len(figure.axes[0].patches) == 3 * (len(sentence.split()) + 1)
    refuses(passes_strip, table, ("pass", "positive", "place", "word", "attention"))
    words = alt(passes.answers(TURNED))
    assert "positive with 80.6 % after pass 1" in words and words.endswith("negative with 78.9 % after pass 3.")


@pytest.mark.parametrize(("sentence", "why"), [("  ", "no words"), ("the film was zxcv", "does not know “zxcv”")])
def test_a_sentence_that_the_model_cannot_read_is_refused(sentence: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        passes.answers(sentence)
