"""The pages as files: whole, self-contained, and refused in one sentence where they cannot be made."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from other_tokenizers import unigram_tokenizer

from rtx.cli import main
from rtxlib.data.tokenization import train
from rtxlib.errors import InputError
from rtxlib.models import ModelConfig, build
from rtxlib.models.pretrained import load_trained
from rtxlib.runs.store import Run
from rtxstudy.commands import pages as commands
from rtxstudy.pages import server, static, weights
from rtxstudy.pages.widget import SETTINGS, TransformerExplorer

TEXTS = ["a fine film", "a dull film", "not a dull film"]


def rtx(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Exit status of ``rtx``, in this process."""
    monkeypatch.setattr(sys, "argv", ["rtx", *words])
    try:
        main()
    except SystemExit as left:
        return int(left.code or 0)
    return 0


def saved_run(folder: Path, **settings: object) -> Run:
    """A run as the store has it, of a model that was never trained."""
    tokenizer = train(TEXTS, 70)
    model = build(
        "recurrent-1x2x32", vocab_size=len(tokenizer), num_labels=2, id2label={0: "bad", 1: "good"}, **settings
    )
    path = folder / "runs" / "0123456789abcdef"
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    spec = {"model": "recurrent-1x2x32", "data": {"max_length": 16}, "recipe": {}, "seed": 0, "label_names": ["bad", "good"]}
    metrics = {"model": "recurrent-1x2x32", "seed": 0, "accuracy": 0.5, "train_seconds": 0.0}
    metrics["parameters"] = sum(p.numel() for p in model.parameters())
    for name, record in {"spec": spec, "metrics": metrics, "complete": {}}.items():
        (path / f"{name}.json").write_text(json.dumps(record))
    return Run(path.name, spec, metrics, path)


# ------------------------------------------------------------------------------------------------------ joining modules


def test_modules_keep_their_names_to_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str) -> None:
    """Two modules with the same private name, an import under another name, and one of everything: as one script."""
    monkeypatch.setattr(static, "HERE", tmp_path)
    (tmp_path / "a").mkdir()
    modules = {
        "low": "// a comment\nconst own = 1;\n/**\n * @param {x} y\n */\nexport const up = own + 1; // 2\nexport class C {}\n",
        "mid": 'import * as low from "./low.js";\nconst own = 10;\nexport function f() { return own + low.up; }\n',
        "top": 'import {\n  f as g,\n} from "./mid.js";\nimport { up, C } from "./low.js";\n'
        "export const all = [g(), up, new C() instanceof C];\n",
    }
    for name, source in modules.items():
        (tmp_path / "a" / f"{name}.js").write_text(source)
    assert "@param" not in static.script("a/top.js") and "a comment" not in static.script("a/top.js")
    code = static.script("a/top.js") + "\nconsole.log(JSON.stringify(a_top.all));"
    assert subprocess.check_output([node, "-e", code], text=True).strip() == "[12,2,true]"


@pytest.mark.parametrize(
    "line",
    ['import f from "./low.js";', "export default 1;", "export { x };", 'import "./low.js";', "export let x = 1;"],
)
def test_a_line_that_cannot_be_inlined_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr(static, "HERE", tmp_path)
    (tmp_path / "low.js").write_text("const x = 1;\n")
    (tmp_path / "top.js").write_text(line + "\n")
    with pytest.raises(ValueError, match="cannot be inlined"):
        static.script("top.js")


def test_modules_in_a_circle_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "HERE", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\n')
    with pytest.raises(ValueError, match="imports itself"):
        static.script("a.js")


@pytest.mark.parametrize("name", static.PAGES)
def test_a_page_fetches_nothing_and_no_state_ends_its_script(name: str) -> None:
    page = static.page(name, {"tokens": ["</script><img src=x>", "<!--", "<SCRIPT>"]})
    assert not re.search(r"""(?:src|href)=["'](?!data:,)|@import|url\((?!#)""", page)  # "url(#" names a part of the page itself
    assert page.count("</script>") == 2 and page.lower().count("<script") == 2 and "<!--" not in page
    state = re.search(r'id="state">(.*)</script>', page)[1]
    assert json.loads(state)["tokens"] == ["</script><img src=x>", "<!--", "<SCRIPT>"]


def test_a_page_there_is_none_of_is_named() -> None:
    with pytest.raises(InputError, match="Did you mean 'transformer'"):
        static.page("transfomer")


# ------------------------------------------------------------------------------------------------------ the command


def test_rtx_pages_writes_every_page_and_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rtx(monkeypatch, "pages", "--out", str(tmp_path / "new" / "folder")) == 0
    files = {file.name: file.read_text() for file in (tmp_path / "new" / "folder").iterdir()}
    assert files.keys() == {"index.html", *(f"{name}.html" for name in static.PAGES)}
    for name, title in static.PAGES.items():
        assert files[f"{name}.html"] == static.page(name)
        card = re.search(rf'<a href="{name}.html">(.*?)</a>', files["index.html"], re.S)[1]
        assert card.startswith("<svg") and f"<strong>{title}</strong>" in card and static.SENTENCES[name] in card


def test_rtx_pages_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    assert rtx(monkeypatch, "pages") == 2
    assert capsys.readouterr().err.count("\n") == 1
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert rtx(monkeypatch, "pages", "--out", str(tmp_path), "--serve", "--port", port) == 2
    assert f"Port {port} cannot be had" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_rtx_pages_writes_over_its_own_and_nobody_elses(tmp_path, monkeypatch, capsys) -> None:
    for _ in range(2):
        assert rtx(monkeypatch, "pages", "--out", str(tmp_path)) == 0
    (tmp_path / "index.html").write_text("<title>my garden</title>")
    assert rtx(monkeypatch, "pages", "--out", str(tmp_path)) == 2
    assert "is there and not one of these pages" in capsys.readouterr().err
    assert "garden" in (tmp_path / "index.html").read_text()


@pytest.fixture
def served() -> Iterator[server.PageServer]:
    """A server of one page, in a thread of this process."""
    with server.PageServer({"index.html": "<p>häuser</p>", "a.html": "a" * 100_000}, 0) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


def answer(
    of: server.PageServer, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """What the server answers to one request."""
    asking = http.client.HTTPConnection("127.0.0.1", of.port, timeout=20)
    asking.request(method, path, headers=headers)
    told = asking.getresponse()
    return told, told.read()


def test_only_the_pages_are_served(served: server.PageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the files beside them, nor what a link points to, nor a list of files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "private.txt").write_text("private")
    (tmp_path / "passwd").symlink_to("/etc/passwd")
    for path in ("/", "/index.html", "/index.html?run=1"):
        told, body = answer(served, path)
        assert (told.status, body.decode()) == (200, "<p>häuser</p>")
        assert told.headers["Content-Type"] == "text/html; charset=utf-8"
    others = ("/private.txt", "/passwd", "/.", "/../", "/%2e%2e/", "/a.html/", "/a.html%00", "/" + "x" * 9000)
    for path in others:
        told, body = answer(served, path)
        assert told.status == 404 and body == b"There is no such page.\n"


def test_the_pages_go_to_the_browser_of_this_machine_alone(served: server.PageServer) -> None:
    port = served.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert answer(served, "/", Host=host)[0].status == 200
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"localhost.:{port}",
        "",
    ):
        told, body = answer(served, "/", Host=host)
        assert told.status == 421 and b"html" not in body
    for request in (
        b"GET / HTTP/1.0\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil\r\n\r\n".encode(),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
            raw.sendall(request)
            assert raw.recv(100).split()[1] == b"421"


def test_a_request_that_is_no_reading_is_answered(served: server.PageServer) -> None:
    told, body = answer(served, "/a.html", "HEAD")
    assert (told.status, told.headers["Content-Length"], body) == (200, "100000", b"")
    assert answer(served, "/b.html", "HEAD")[0].status == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        told, _ = answer(served, "/a.html", method)
        assert told.status == 405 and told.headers["Allow"] == "GET, HEAD"
    assert answer(served, "/a.html", "BREW")[0].status == 501


def test_a_slow_client_holds_up_nobody_and_is_cut_off(
    served: server.PageServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as slow:
        slow.sendall(b"GET / HT")
        assert answer(served, "/")[0].status == 200
        began = time.monotonic()
        with contextlib.suppress(OSError):  # a byte now and then must not win it more time
            while time.monotonic() - began < 10:
                slow.sendall(b"T")
                time.sleep(0.1)
        assert time.monotonic() - began < 5
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as gone:
        gone.sendall(f"GET /a.html HTTP/1.0\r\nHost: localhost:{served.port}\r\n\r\n".encode())
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # the answer meets a reset
    assert answer(served, "/")[0].status == 200
    assert capfd.readouterr() == ("", "")


def test_rtx_pages_takes_a_free_port_when_the_usual_one_is_taken(monkeypatch, capsys) -> None:
    monkeypatch.setattr(server.PageServer, "serve_forever", lambda self: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(commands, "PORT", port)
        assert rtx(monkeypatch, "pages", "--serve") == 0
    said = capsys.readouterr()
    other = re.fullmatch(rf"Port {port} is taken, so the pages are at port (\d+)\.\n", said.err)[1]
    assert said.out.startswith(f"http://127.0.0.1:{other}/ ") and other != str(port)


def test_rtx_pages_serves_until_it_is_interrupted() -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "rtx", "pages", "--serve", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        # A test run started in the background hands on a SIGINT that is ignored; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        address = server.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{address}transformer.html", timeout=60) as answer:
            assert answer.read().decode() == static.page("transformer")
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


# ------------------------------------------------------------------------------------------------------ a trained run


@pytest.mark.parametrize(("exact", "dtype", "room"), [(weights.EXACT, "float32", 1e-6), (0, "float16", 2e-3)])
def test_a_run_s_page_says_what_the_run_says(tmp_path, monkeypatch, browser, exact, dtype, room) -> None:
    run = saved_run(tmp_path)
    monkeypatch.setattr(weights, "EXACT", exact)
    packed = weights.packed(run)
    assert packed["dtype"] == dtype
    file = tmp_path / "page.html"
    file.write_text(static.page("transformer", {"run": packed}), encoding="utf-8")
    page = browser.new_context(offline=True).new_page()
    page.goto(file.as_uri())
    page.get_by_label("Your sentence").fill("Not a FINE film, dull!")
    page.wait_for_timeout(100)
    tokens = page.locator(".tokens input").evaluate_all("(all) => all.map((one) => one.value)")
    tokenizer = train(TEXTS, 70)
    encoded = tokenizer("Not a FINE film, dull!", return_tensors="pt")
    # the page keeps an unknown word where the tokenizer has [UNK]
    known = [token if token in tokenizer.vocab else "[UNK]" for token in tokens]
    assert known == tokenizer.convert_ids_to_tokens(encoded["input_ids"][0]) and tokens[5] == ","
    model = load_trained(run.path)
    with torch.no_grad():
        said = model(encoded["input_ids"]).logits[0].softmax(-1)
    shares = page.locator(".likeliest .share").all_inner_texts()
    assert sorted(float(share.strip(" %")) / 100 for share in shares) == pytest.approx(
        sorted(said.tolist()), abs=5e-4 + room
    )
    assert page.locator(".likeliest .word").first.inner_text() == ["bad", "good"][said.argmax()]
    page.context.close()


def test_rtx_pages_adds_the_run_s_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = saved_run(tmp_path)
    assert rtx(monkeypatch, "pages", "--out", str(tmp_path / "out"), "--run", str(run.path)) == 0
    assert (tmp_path / "out" / f"transformer-{run.key}.html").stat().st_size > 100_000
    assert "recurrent-1x2x32, seed 0" in (tmp_path / "out" / "index.html").read_text()


def test_a_run_that_no_page_can_hold_is_refused_in_one_sentence(tmp_path: Path) -> None:
    run = saved_run(tmp_path)
    large = Run(run.key, run.spec, run.metrics | {"parameters": weights.LARGEST + 1}, run.path)
    with pytest.raises(InputError, match=f"at most {weights.LARGEST:,}"):
        weights.packed(large)
    of_pieces = saved_run(tmp_path / "unigram")
    unigram_tokenizer().save_pretrained(of_pieces.path)
    with pytest.raises(InputError, match="Unigram"):
        weights.packed(of_pieces)


@pytest.mark.parametrize("field", [*weights.ABSENT, "residual", "norm_placement"])
def test_a_part_that_the_page_does_not_compute_is_named(field: str) -> None:
    other = {
        "residual": "gated",
        "norm_placement": "sandwich",
        "local_attention": 4,
        "embedding_size": 8,
        "conditioning_size": 8,
        "pass_rank": 2,
    }
    value = other.get(field, 1 if field.endswith("_layers") else not weights.ABSENT.get(field))
    config = ModelConfig(hidden_size=16, num_attention_heads=2, recurrent_depth=2, **{field: value})
    with pytest.raises(InputError, match=field):
        weights.configuration(config)


# ------------------------------------------------------------------------------------------------------ the widget


def test_the_widget_takes_the_page_s_own_settings_and_no_others(node: str) -> None:
    model = static.HERE / "transformer" / "state.js"
    code = f'import("{model.as_uri()}").then((page) => console.log(JSON.stringify(Object.keys(page.START))))'
    start = json.loads(subprocess.check_output([node, "-e", code]))
    assert {*SETTINGS, "run", "typed"} == set(start)  # what was typed comes with the tokens of a string
    with pytest.raises(InputError, match="Did you mean 'd_model'"):
        TransformerExplorer(dmodel=8)


def test_without_a_kernel_the_widget_is_its_static_page() -> None:
    data, _ = TransformerExplorer(tokens=["a", "b"])._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"] == static.iframe("transformer", {"tokens": ["a", "b"]})


def test_a_state_that_is_no_json_is_refused_in_one_sentence() -> None:
    for broken in ({"weights/table[0,0]": float("nan")}, {"weights/table[0,0]": object()}):
        with pytest.raises(InputError, match="plain JSON"):
            TransformerExplorer(edits=broken)
        with pytest.raises(InputError, match="plain JSON"):
            static.page("transformer", {"edits": broken})


def test_numbers_are_those_of_the_present_state_or_none() -> None:
    page = TransformerExplorer(tokens=["a"], d_model=8)
    with pytest.raises(InputError, match="has not answered yet"):
        page.attention  # noqa: B018
    page.numbers = {"of": {"tokens": ["a"], "d_model": 8}, "attention": [[[[1.0]]]]}
    assert page.attention.shape == (1, 1, 1, 1)
    page.set(d_model=10)
    assert page.state == {"tokens": ["a"], "d_model": 10}
    with pytest.raises(InputError, match="has not answered yet"):
        page.attention  # noqa: B018
