"""The trained weights in the transformer page are what the command writes, and do as well as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from test_pages_core import shipped

from rtxstudy.pages import train_weights as command
from rtxstudy.pages import weights

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
def test_the_page_s_weights_are_those_of_the_command_and_as_good_as_it_says(node: str, name: str) -> None:
    sizes = {"sentiment": command.SENTIMENT, "reversal": command.REVERSAL}[name]
    model, record = shipped(node, name)
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
        found = [command.reversed_right(model, sizes["held_out"], 1)]
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
        batch = command.reversals(50, held_out, torch.Generator().manual_seed(0))
        for source, label, begun in zip(batch["input_ids"], batch["labels"], batch["decoder_input_ids"], strict=True):
            letters = source[source > 0].tolist()
            assert label[label >= 0].tolist() == [*letters[::-1], command.EOS]
            assert begun[: len(letters) + 1].tolist() == [command.BOS, *letters[::-1]]
            assert (sum(letters) % 5 == 0) == held_out
