"""Sentence embeddings are those of sentence-transformers, whatever the texts and whatever lies beside them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from in_process import rtx
from near import assert_near
from pyarrow import parquet

from rtx.embedding import embed, similarity
from rtxlib.data import tokenization
from rtxlib.data.tokenization import pretrained_tokenizer
from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset
from rtxlib.models.pretrained import find, load, version

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SAMPLE, ANOTHER = (
    "This is a sample sentence.",
    "Another example text.",
)  # of the model's reference; their cosine is 0.5552
HAND_WRITTEN = [
    "", " ", "\n\t", "a", "Word", "word", "?!", "…", "0", "3.14159", SAMPLE, ANOTHER, "not good", "not bad",
    "🙂", "Great 👍🏽 service 👨‍👩‍👧 again!", "naïve café — “quoted”", "e\u0301 and é", "Straße", "İstanbul", "ﬁne ﬂoor",
    "价格便宜，质量很好。", "とても良い", "아주 좋아요", "Отличный фильм", "ممتاز جدا", "शानदार", "\u200bzero\u200bwidth\u200b",
    "tab\tand\nline break", "null \x00 byte", "<br />HTML &amp; entities", "https://example.org/a?b=c#d", "ALL CAPITALS",
    "supercalifragilisticexpialidocious" * 4, "word " * 100, "long " * 400, "ünïcödé " * 300, "🙂" * 300, "a" * 5000,
]  # fmt: skip


@pytest.fixture(scope="module")
def minilm(hub: str) -> Path:
    return find(MINILM)


@pytest.fixture(scope="module")
def encoder(minilm: Path) -> Encoder:
    return load(MINILM)


@pytest.fixture(scope="module")
def tokenizer(minilm: Path) -> tokenization.PreTrainedTokenizerFast:
    return pretrained_tokenizer(minilm)


@pytest.fixture(scope="module")
def texts(hub: str) -> list[str]:
    """Hand-written oddities and real reviews, short and long."""
    from huggingface_hub import hf_hub_download

    def column(repo: str, file: str, name: str) -> list[str]:
        return pd.read_parquet(hf_hub_download(repo, file, repo_type="dataset"))[name].head(12).tolist()

    sst2 = column("stanfordnlp/sst2", "data/validation-00000-of-00001.parquet", "sentence")
    yelp = column("fancyzhx/yelp_polarity", "plain_text/test-00000-of-00001.parquet", "text")
    return [*HAND_WRITTEN, *sst2, *yelp]


@pytest.fixture(scope="module")
def embeddings(texts: list[str], encoder: Encoder, tokenizer: tokenization.PreTrainedTokenizerFast) -> np.ndarray:
    return embed(texts, encoder, tokenizer)


@pytest.fixture(scope="module")
def small() -> tuple[Encoder, tokenization.PreTrainedTokenizerFast]:
    """An encoder of random weights and a vocabulary of a few words, for what no real model is needed for."""
    words = ["the film was dull", "the staff were kind and the soup was hot", "never again"]
    tokenizer = tokenization.train(words, 100)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": len(tokenizer)}
    torch.manual_seed(0)
    return Encoder(preset("minilm-l3", **sizes)).eval(), tokenizer


def test_equals_sentence_transformers(texts: list[str], embeddings: np.ndarray, minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(minilm), device="cpu").encode(texts)
    assert len(texts) >= 60 and embeddings.shape == theirs.shape == (len(texts), 384)
    assert embeddings.dtype == np.float32
    assert_near(embeddings, theirs)
    assert np.linalg.norm(embeddings, axis=1) == pytest.approx(1, abs=1e-5)


def test_the_sample_sentences_score_what_the_reference_says(
    encoder: Encoder, tokenizer: tokenization.PreTrainedTokenizerFast
) -> None:
    assert encoder.config.pooling == "mean"
    both = embed([SAMPLE, ANOTHER], encoder, tokenizer)
    assert similarity(both[:1], both[1:]).round(4).tolist() == [[pytest.approx(0.5552, abs=1e-6)]]


def test_a_text_is_read_up_to_its_256th_token(
    encoder: Encoder, tokenizer: tokenization.PreTrainedTokenizerFast
) -> None:
    words = ["word"] * 320
    late, early = words.copy(), words.copy()
    late[299], early[200] = "different", "different"
    a, b, c = embed([" ".join(x) for x in (words, late, early)], encoder, tokenizer)
    assert_near(a, b)
    assert np.abs(a - c).max() > 1e-3
    # [CLS], 254 words, [SEP]
    exact, longer = embed([" ".join(["word"] * n) for n in (254, 255)], encoder, tokenizer)
    assert_near(exact, longer)


def test_neither_order_nor_neighbours_matter(
    texts: list[str], embeddings: np.ndarray, encoder: Encoder, tokenizer: tokenization.PreTrainedTokenizerFast
) -> None:
    order = np.random.default_rng(0).permutation(len(texts))[:30]
    shuffled = embed([texts[i] for i in order], encoder, tokenizer)
    assert_near(shuffled, embeddings[order])
    for i in order[:10]:
        assert_near(embed([texts[i]], encoder, tokenizer)[0], embeddings[i])


def test_no_texts_give_no_rows(small: tuple) -> None:
    assert embed([], *small).shape == (0, 32)


def test_progress_counts_every_text_once(small: tuple) -> None:
    told = []
    embed(["the film was dull " * (i % 40) for i in range(200)], *small, report=lambda *x: told.append(x))
    done = [count for count, _ in told]
    assert len(told) > 1 and done == sorted(set(done)) and done[-1] == 200 and {total for _, total in told} == {200}


def test_a_text_longer_than_a_batch_goes_alone() -> None:
    tokenizer = tokenization.train(["the film was dull"], 100)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": len(tokenizer)}
    encoder = Encoder(preset("modernbert-base", num_hidden_layers=2, pad_token_id=0, **sizes)).eval()
    many = ["dull " * 900, "the film", "the film was " * 300, "", "dull " * 1000]
    assert all(len(x) > 600 for x in tokenizer(many[::2])["input_ids"])
    together = embed(many, encoder, tokenizer)
    assert_near(together, np.concatenate([embed([text], encoder, tokenizer) for text in many]))


def test_the_model_is_left_in_the_mode_it_had(small: tuple) -> None:
    encoder, tokenizer = small
    calm = embed(["the film was dull"], encoder, tokenizer)
    encoder.train()
    encoder.stack.eval()
    try:
        assert np.array_equal(embed(["the film was dull"], encoder, tokenizer), calm)  # without dropout
        assert encoder.training and encoder.embeddings.dropout.training and not encoder.stack.training
        ids = torch.tensor([[2, 5, 3]])
        encoder.embed(ids).sum().backward()  # and it can still be trained
    finally:
        encoder.eval()


def test_special_tokens_in_a_text_are_ordinary_characters(small: tuple) -> None:
    plain, spelt = embed(["the film", "the [SEP] film"], *small)
    assert np.abs(plain - spelt).max() > 1e-3
    ids, _ = tokenization.encode(["the [SEP] film"], small[1], None)
    assert (ids == small[1].sep_token_id).sum() == 1


def test_a_single_string_or_a_strange_tokenizer_is_refused(small: tuple) -> None:
    encoder, tokenizer = small
    with pytest.raises(InputError, match="list of texts"):
        embed("the film was dull", encoder, tokenizer)
    narrow = Encoder(preset("minilm-l3", hidden_size=32, num_attention_heads=2, vocab_size=20))
    with pytest.raises(InputError, match="came with the encoder"):
        embed(["the film"], narrow, tokenizer)


def test_similarity_is_the_cosine_of_rows() -> None:
    a = np.array([[1, 0], [3, 4], [0, 0]], dtype=np.float32)
    b = np.array([[2, 0], [-4, 3]], dtype=np.float32)
    assert similarity(a, b) == pytest.approx(np.array([[1, -0.8], [0.6, 0], [0, 0]]), abs=1e-6)
    many = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    assert similarity(many, many).max() <= 1 and np.diag(similarity(many, many)) == pytest.approx(1, abs=1e-6)
    for wrong in (np.ones((2, 3)), np.ones(2)):
        with pytest.raises(InputError, match="width"):
            similarity(a, wrong)


# ---------------------------------------- tokenizers of pretrained models


def test_a_tokenizer_brings_no_padding_or_truncation_along(minilm: Path) -> None:
    settings = json.loads((minilm / "tokenizer.json").read_text())
    assert settings["truncation"] and settings["padding"]  # what would cut at 128 and pad to it
    tokenizer = pretrained_tokenizer(minilm)
    assert [len(ids) for ids in tokenizer(["word", "word " * 300])["input_ids"]] == [3, 302]


def test_a_folder_of_configuration_and_tokenizer_alone_will_do(hub: str) -> None:
    tokenizer = pretrained_tokenizer(find("answerdotai/ModernBERT-base"))
    assert (len(tokenizer), tokenizer.pad_token_id) == (50_368, 50_283)
    assert tokenizer("Hello world")["input_ids"] == [50281, 12092, 1533, 50282]


def test_an_old_vocabulary_reads_as_the_new_file_does(minilm: Path, tmp_path: Path) -> None:
    for name in ("vocab.txt", "config.json"):
        (tmp_path / name).write_bytes((minilm / name).read_bytes())
    texts = ["Naïve Café, 北京 unbelievable!", ""]
    assert pretrained_tokenizer(tmp_path)(texts)["input_ids"] == pretrained_tokenizer(minilm)(texts)["input_ids"]
    assert tokenization.fetch(str(tmp_path)).path == tmp_path / "vocab.txt"  # so that it is fine-tuned, too


def test_a_folder_without_a_usable_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither tokenizer\.json nor vocab\.txt"):
        pretrained_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": ')
    with pytest.raises(InputError, match="cannot be read"):
        pretrained_tokenizer(tmp_path)
    other = tokenization.Tokenizer(tokenization.models.WordLevel({"<s>": 0, "[PAD]": 1}, unk_token="<s>"))
    other.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match=r"no \[CLS\] and no \[SEP\]"):
        pretrained_tokenizer(tmp_path)


# ---------------------------------------- the command line


def test_embed_writes_texts_and_vectors_in_order(
    texts: list[str], embeddings: np.ndarray, minilm: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "reviews.parquet", tmp_path / "embeddings.parquet"
    kept = [text for text in texts if len(text) < 400]
    pd.DataFrame({"review": kept, "stars": 3}).to_parquet(file)
    done = rtx("embed", file, "--text-column", "review", "--out", out)
    assert done.returncode == 0, done.stderr
    said = done.stderr
    assert f"{len(kept)}/{len(kept)}" in said and f"{len(kept)} texts, 384 dimensions, " in said.splitlines()[-1]
    table = parquet.read_table(out)
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 384)
    assert table["text"].to_pylist() == kept and "" in kept
    vectors = np.stack(table["embedding"].to_numpy())
    assert_near(vectors, embeddings[[text in kept for text in texts]])
    described = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    assert described == {
        "model": MINILM, "revision": version(MINILM), "weights": "", "pooling": "mean", "normalized": "true",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {file.name, out.name}


def test_embed_reads_every_kind_of_file(minilm: Path, tmp_path: Path) -> None:
    files = {
        "a.txt": f"{SAMPLE}\n\n{ANOTHER}\n",
        "a.csv": f'text\n"{SAMPLE}"\n""\n"{ANOTHER}"\n',
        "a.tsv": f"text\tn\n{SAMPLE}\t1\n\t2\n{ANOTHER}\t3\n",
        "a.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in (SAMPLE, None, ANOTHER)),
    }
    found = []
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        done = rtx("embed", tmp_path / name, "--model", minilm, "--out", tmp_path / "out.parquet", "--force")
        assert done.returncode == 0, done.stderr
        found.append(parquet.read_table(tmp_path / "out.parquet"))
        assert found[-1]["text"].to_pylist() == [SAMPLE, "", ANOTHER]
    assert all(table["embedding"].equals(found[0]["embedding"]) for table in found)
    assert found[0].schema.metadata[b"revision"].startswith(b"sha256:")  # a folder has no commit


def test_half_a_surrogate_pair_is_no_text_but_no_obstacle(minilm: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"text": "cut in half \\ud83d"}\n')
    done = rtx("embed", tmp_path / "cut.jsonl", "--model", minilm, "--out", tmp_path / "out.parquet")
    assert done.returncode == 0, done.stderr
    assert "1 text, 384 dimensions" in done.stderr and ": loaded 103 of 104 tensors; left out: " in done.stderr
    assert parquet.read_table(tmp_path / "out.parquet")["text"].to_pylist() == ["cut in half \ufffd"]


def test_similarity_of_two_is_a_number_and_of_more_a_matrix(minilm: Path) -> None:
    two = rtx("similarity", SAMPLE, ANOTHER)
    assert two.stdout == f'0.5552  "{SAMPLE}" and "{ANOTHER}"\n', two.stderr
    three = rtx("similarity", SAMPLE, ANOTHER, SAMPLE, "--model", minilm).stdout.splitlines()
    assert [line.split()[:4] for line in three] == [
        ["1", "2", "3"],
        ["1", "1.0000", "0.5552", "1.0000"],
        ["2", "0.5552", "1.0000", "0.5552"],
        ["3", "1.0000", "0.5552", "1.0000"],
    ]
    assert three[2].endswith(ANOTHER)
    record = json.loads(rtx("similarity", SAMPLE, ANOTHER, "--json", "--model", minilm).stdout)
    assert record["texts"] == [SAMPLE, ANOTHER] and record["model"] == str(minilm)
    assert np.array(record["similarity"]) == pytest.approx(np.array([[1, 0.5552], [0.5552, 1]]), abs=5e-5)


def test_bad_input_is_one_sentence_and_a_status(minilm: Path, tmp_path: Path) -> None:
    good, empty, latin, table = (tmp_path / name for name in ("good.txt", "empty.txt", "latin.txt", "t.csv"))
    good.write_text("a\n")
    empty.write_text("")
    latin.write_bytes("caf\xe9\n".encode("latin-1"))
    table.write_text("text,label\na,b\n")
    parquet.write_table(pa.table({"text": ["a"]}), tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    for arguments, says in (
        (["embed", good, "--out", tmp_path / "out.npy"], "must end in .parquet"),
        (["embed", good], "--out"),
        (["embed", good, "--out", tmp_path / "nowhere" / "out.parquet"], "There is no folder"),
        (["embed", tmp_path / "nothing.csv", "--out", out], "There is no file"),
        (["embed", tmp_path / "in.parquet", "--out", tmp_path / "in.parquet"], "would replace"),
        (["embed", empty, "--out", out], "holds no text"),
        (["embed", latin, "--out", out], "UTF-8"),
        (["embed", table, "--text-column", "txet", "--out", out], "no column 'txet'"),
        (["embed", good, "--model", "nowhere", "--out", out], "There is no folder nowhere"),
        (["embed", good, "--model", "nobody/no-such-model", "--out", out], "has no model nobody/no-such-model"),
        (["embed", good, "--model", minilm, "--weights", "other.bin", "--out", out], "no other.bin"),
        (["similarity"], "at least two texts"),
        (["similarity", "alone"], "at least two texts"),
        (["similarity", "a", "b", "--model", tmp_path], "config.json"),
    ):
        done = rtx(*arguments)
        error = done.stderr
        assert done.returncode == 2 and says in error and "Traceback" not in error, (arguments, error)
        assert not done.stdout and "texts/s" not in error
    assert not out.exists() and not list(tmp_path.glob(".*"))


def test_ctrl_c_leaves_no_half_a_file(minilm: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "long.txt", tmp_path / "out.parquet"
    file.write_text("a sentence of seven words and more " * 40 + "\n" * 3000 + "a long text again " * 90 + "\n" * 3000)
    running = subprocess.Popen(
        [sys.executable, "-m", "rtx", "embed", str(file), "--model", str(minilm), "--out", str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        # A test run started in the background hands on a SIGINT that is ignored; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while b"/s]" not in (seen := running.stderr.read1(4096)):  # the bar is drawn before the first batch
            assert seen, "ended before it began"
        running.send_signal(signal.SIGINT)
        error = running.stderr.read().decode()
        assert running.wait(60) == 130
    finally:
        running.kill()
    assert "was not written" in error and "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
