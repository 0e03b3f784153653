"""Texts to token ids, with BERT's WordPiece from the Hub or with a WordPiece vocabulary trained here."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from rtxlib.checksums import check_kinds
from rtxlib.data.batching import Tokens
from rtxlib.data.datasets import INSTEAD
from rtxlib.data.rows import PAIR, SPLITS, Rows, Text, sides, texts_of
from rtxlib.data.splits import by_length
from rtxlib.errors import InputError, disk_full
from rtxlib.hub import require_intact, revision, unreachable

if TYPE_CHECKING:
    from rtxlib.data.spec import DataSpec

BERT = "google-bert/bert-base-uncased"
FILES = ("tokenizer.json", "vocab.txt")  # of a tokenizer, the first one that is there
PAD, UNK, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # ids 0 to 4 if trained here
_ALPHABET = 1000  # characters a trained vocabulary knows
_BEGINNING = 16  # characters for each token that is kept: enough of a long text, unless its words are very long
_CHUNK, _CHUNK_CHARACTERS = 4096, 1 << 23  # texts and characters encoded at once: bounds the memory of the encodings
# Encoding takes time and memory in proportion to the characters of a text. A model reads 512 tokens at most.
LONGEST_TEXT = 1_000_000  # characters of a text that are tokenised
# The trainer of vocabularies takes quadratic time in the length of a word.
LONGEST_WORD = 10_000  # characters of a word that a vocabulary is learnt from; real words have a few hundred at most


# ---------------------------------------- the tokenizer and the token ids of a spec


class TokenizerFile(NamedTuple):
    """``tokenizer.json`` of a model, and its version: a commit of the Hub, or a hash of the file."""

    model: str
    path: Path
    version: str


def wanted(spec: DataSpec) -> str | None:
    """The model whose tokenizer a spec asks for, a folder or a Hub id; None where a vocabulary is to be trained."""
    if spec.tokenizer == "bert" or (spec.tokenizer == "auto" and spec.hub):
        return BERT
    return spec.tokenizer if "/" in spec.tokenizer else None


def fetch(model: str) -> TokenizerFile | None:
    """The tokenizer file of a model; None where neither the Hub nor its cache has it.

    Raises:
        InputError: the model is a folder without the file, the disk is full, or the file was changed on its way.
    """
    from huggingface_hub import hf_hub_download

    if (folder := Path(model).expanduser()).is_dir():
        if (path := next((folder / name for name in FILES if (folder / name).is_file()), None)) is None:
            raise InputError(f"{folder} holds neither tokenizer.json nor vocab.txt.")
        return TokenizerFile(model, path, "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()[:16])
    try:
        answers = revision(model, "model") is not None
        path = Path(hf_hub_download(model, "tokenizer.json", local_files_only=not answers))
    except Exception as error:  # no such repo on this Hub, or no connection; the caller says so
        if disk_full(error):
            raise unreachable(model, error, INSTEAD) from error
        return None
    require_intact(model, "model", only=path.name)  # not the weights, which may lie beside it and are large
    return TokenizerFile(model, path, path.parent.name)  # the cache names the folder by the commit


def choose(rows: Rows, spec: DataSpec, file: TokenizerFile | None) -> tuple[PreTrainedTokenizerFast, str]:
    """The tokenizer of a spec and its description: the file's, or without one a vocabulary of the training split."""
    if file is not None:
        tokenizer = pretrained_tokenizer(file.path.parent)
        normalizer = tokenizer.backend_tokenizer.normalizer  # None: text is taken as it is
        if not spec.lowercase and normalizer and normalizer.normalize_str("A") == "a":
            rows.notes.append(f"{file.model} lower-cases all text, also with lowercase=False.")
        return tokenizer, f"{file.model} at {file.version[:12]}"
    texts = [text for column in rows.text_columns for text in rows.part("train")[column]]
    tokenizer = train(texts, spec.vocab_size, spec.lowercase)
    if long := sum(_long_word(text, tokenizer.backend_tokenizer.normalizer) for text in texts):
        rows.notes.append(
            f"{long:,} training text{' holds' if long == 1 else 's hold'} a word of more than {LONGEST_WORD:,} characters; "
            "the vocabulary was learnt from the beginning of such words."
        )
    described = "wordpiece, trained on the training split"
    if wanted(spec):
        described += f", since {BERT} was out of reach"
        rows.notes.append(
            f"The tokenizer of {BERT} could be had neither from the Hub nor from its cache; a WordPiece "
            f"vocabulary of {len(tokenizer):,} pieces was trained on the training split instead."
        )
    return tokenizer, described


def tokenise(rows: Rows, spec: DataSpec, tokenizer: PreTrainedTokenizerFast) -> dict[str, Tokens]:
    """The token ids of each split, cut to ``max_length``.

    The rows get the columns words and tokens (before the cut to ``max_length``), label_name, and label as a number. With
    ``lengths`` only the shortest or longest rows of each split remain.
    """
    pairs = PAIR in rows.table
    if cut := cut_texts(texts_of(rows.table)):
        rows.notes.append(cut)
    if pairs:  # so that whoever opens the saved tokenizer gets token types from it
        tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    separator = tokenizer.sep_token_id if pairs else None
    numbers = {name: number for number, name in enumerate(rows.label_names)}
    arrays, parts, before = {}, [], len(rows.table)
    for name in SPLITS:
        part = rows.part(name)
        ids, offsets = encode(texts_of(part), tokenizer, None)
        part = part.assign(
            words=sum(part[column].str.split().str.len() for column in rows.text_columns),
            tokens=np.diff(offsets),
            label_name=part["label"],
            label=part["label"].map(numbers).astype(np.int64),
        )
        if spec.lengths != "all":
            chosen = by_length(np.diff(offsets), spec.lengths, spec.seed)
            part, (ids, offsets) = part.iloc[chosen], take(ids, offsets, chosen)
        cut_ids = truncate(ids, offsets, spec.max_length, separator)
        arrays[name] = Tokens(*cut_ids, part["label"].to_numpy(), separator)
        parts.append(part)
    rows.table = pd.concat(parts, ignore_index=True)
    if spec.lengths != "all":
        rows.steps.append((f"{spec.lengths} 30 % of each split kept, by tokens", before, 0, len(rows.table)))
    rows.changed(f"texts cut to {spec.max_length} tokens", int((rows.table["tokens"] > spec.max_length).sum()))
    return arrays


def cut_texts(texts: Iterable[Text]) -> str:
    """The sentence that says how many texts ``encode`` cuts because of their characters; "" if there are none."""
    long = sum(max(map(len, sides(text))) > LONGEST_TEXT for text in texts)
    many = "1 text is" if long == 1 else f"{long:,} texts are"
    return f"{many} longer than {LONGEST_TEXT:,} characters; only the beginning is read." if long else ""


# ---------------------------------------- vocabularies


def train(texts: Iterable[str], vocab_size: int, lowercase: bool = True) -> PreTrainedTokenizerFast:
    """A WordPiece vocabulary (Schuster and Nakajima 2012, as BERT uses it) learnt from the training texts.

    The same set of texts gives the same vocabulary.

    Args:
        texts: the training texts
        vocab_size: pieces, the five special ones included. All letters of the texts are pieces, so a small size is exceeded.
        lowercase: the tokenizer lower-cases what it encodes later

    Raises:
        InputError: the vocabulary is too small, or the texts hold nothing to learn from.
    """
    if vocab_size < 64:
        raise InputError(f"vocab_size is {vocab_size}; a vocabulary needs at least 64 pieces.")
    texts = sorted(set(texts))
    counts = Counter("".join(texts))
    if len(counts) > _ALPHABET:  # the rarest characters become [UNK]; ties are broken by code point
        alphabet = {c for c, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_ALPHABET]}
        texts = [text.translate({ord(c): " " for c in counts.keys() - alphabet}) for text in texts]
    if not any(text.strip() for text in texts):
        raise InputError("There is no text to learn a vocabulary from.")
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    # The trainer numbers "##x" pieces in the order of a randomly seeded hash map and breaks ties between merges by
    # those numbers. As special tokens they get fixed numbers, and so the vocabulary is always the same.
    texts = _short_words(texts, tokenizer.normalizer)
    letters = sorted(set("".join(tokenizer.normalizer.normalize_str(c) for c in set("".join(texts)))))
    inner = [f"##{c}" for c in letters if len(tokenizer.pre_tokenizer.pre_tokenize_str(f"a{c}a")) == 1]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=[*SPECIAL, *inner], limit_alphabet=len(letters), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.model = models.WordPiece(vocab=tokenizer.get_vocab(), unk_token=UNK)
    add_ends(tokenizer, CLS, SEP)
    return wrap(tokenizer)


def add_ends(tokenizer: Tokenizer, cls: str, sep: str) -> None:
    """Let a tokenizer write [CLS] text [SEP], and of a pair [CLS] first [SEP] second [SEP], the second with type 1."""
    ids = [(token, tokenizer.token_to_id(token)) for token in (cls, sep)]
    single, pair = f"{cls} $A {sep}", f"{cls} $A {sep} $B:1 {sep}:1"
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)


def _long_word(text: str, normalizer: normalizers.Normalizer) -> bool:
    """Whether a word of a text is too long to learn from. Blanks separate words once the text is normalised."""
    return len(text) > LONGEST_WORD and max(map(len, normalizer.normalize_str(text).split(" "))) > LONGEST_WORD


def _short_words(texts: list[str], normalizer: normalizers.Normalizer) -> list[str]:
    """The texts with each word cut to ``LONGEST_WORD`` characters."""
    longer = re.compile(rf"([^ ]{{{LONGEST_WORD}}})[^ ]+")
    return [longer.sub(r"\1", normalizer.normalize_str(text)) if _long_word(text, normalizer) else text for text in texts]


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """A ``tokenizers`` object with BERT's five special tokens as a tokenizer of transformers."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNK,
        cls_token=CLS,
        sep_token=SEP,
        mask_token=MASK,
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def special_ids(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
    """The token ids that training treats specially: padding, unknown, mask, and the two around every text."""
    numbers = {name: getattr(tokenizer, f"{name}_token_id") for name in ("pad", "unk", "mask", "cls", "sep")}
    return {name: number for name, number in numbers.items() if number is not None}


def load_tokenizer(path: Path | str) -> PreTrainedTokenizerFast:
    """The tokenizer saved in a folder (of prepared data or of a run).

    Raises:
        InputError: the folder holds no tokenizer.json.
    """
    if not (Path(path) / "tokenizer.json").is_file():
        raise InputError(f"{path} holds no tokenizer.json.")
    check_kinds(Path(path))
    return PreTrainedTokenizerFast.from_pretrained(str(path))


def pretrained_tokenizer(folder: Path | str) -> PreTrainedTokenizerFast:
    """The tokenizer of a pretrained model, with its padding and truncation switched off.

    It is read from ``tokenizer.json``, or made from ``vocab.txt`` as the folder's configuration says.

    Raises:
        InputError: the folder holds neither file, the file is damaged, or the vocabulary lacks [CLS], [SEP] or [PAD].
    """
    folder = Path(folder)
    if not any((folder / name).is_file() for name in FILES):
        raise InputError(f"{folder} holds neither tokenizer.json nor vocab.txt, so its model cannot read text.")
    check_kinds(folder)
    try:
        if (folder / "tokenizer.json").is_file():
            backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
        else:
            from transformers import AutoTokenizer  # here, because it takes longer to import than torch

            backend = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    except Exception as error:  # tokenizers raises nothing narrower
        reason = str(error).partition("\n")[0]
        raise InputError(f"The tokenizer of {folder} cannot be read ({reason}); fetch it again.") from error
    if missing := [token for token in (CLS, SEP, PAD) if backend.token_to_id(token) is None]:
        raise InputError(f"The vocabulary of {folder} has no {' and no '.join(missing)}, which an encoder here needs.")
    return wrap(backend)


def encode(
    texts: Iterable[Text], tokenizer: PreTrainedTokenizerFast, max_length: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of ``[CLS] text [SEP]``, or of pairs ``[CLS] first [SEP] second [SEP]``, all rows end to end.

    Special tokens spelt out in a text are encoded as ordinary characters. The tokenizer's own padding and truncation
    are ignored and left unchanged.

    Args:
        texts: n texts or pairs; of a text longer than ``LONGEST_TEXT`` only the beginning is encoded
        tokenizer: any tokenizer with [CLS] and [SEP]
        max_length: a longer row is cut (see ``truncate``); None: nothing is cut

    Returns:
        ids (total_tokens,) int32 and offsets (n + 1,) int64.
    """
    backend = tokenizer.backend_tokenizer
    literal, padding, truncation = backend.encode_special_tokens, backend.padding, backend.truncation
    backend.encode_special_tokens = True
    backend.no_padding()  # tokenizer(texts, padding=True) leaves padding switched on, and it would count as text
    backend.no_truncation()
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    parts: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    try:
        for chunk in _chunks(_sides(text, backend, max_length) for text in texts):
            encodings = iter(backend.encode_batch_fast([side for row in chunk for side in row], add_special_tokens=False))
            flat: list[int] = []
            ends = [0]
            for row in chunk:
                flat.append(cls)
                for _ in row:
                    flat.extend(next(encodings).ids)
                    flat.append(sep)
                ends.append(len(flat))
            ids, offsets = np.array(flat, dtype=np.int32), np.array(ends, dtype=np.int64)
            if max_length is not None:
                ids, offsets = truncate(ids, offsets, max_length, sep if len(chunk[0]) == 2 else None)
            parts.append(ids)
            lengths.append(np.diff(offsets))
    finally:
        backend.encode_special_tokens = literal
        if padding is not None:
            backend.enable_padding(**padding)
        if truncation is not None:
            backend.enable_truncation(**truncation)
    ids = np.concatenate(parts) if parts else np.empty(0, np.int32)
    return ids, np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)


def _sides(text: Text, backend: Tokenizer, max_length: int | None) -> tuple[str, ...]:
    """The one text or the two texts of a row, of each only what is read."""
    if isinstance(text, str):
        return (_beginning(text[:LONGEST_TEXT], backend, None if max_length is None else max_length - 2),)
    return tuple(side[:LONGEST_TEXT] for side in text)


def _beginning(text: str, backend: Tokenizer, room: int | None) -> str:
    """The beginning of a text, if it has the same first ``room`` tokens as the whole text, which takes longer to tokenise.

    Words are tokenised one by one, so only the tokens of the last word can change when the text goes on.
    """
    if room is None or len(text) <= _BEGINNING * room:
        return text
    words = backend.encode(text[: _BEGINNING * room], add_special_tokens=False).word_ids
    return text[: _BEGINNING * room] if sum(word != words[-1] for word in words) >= max(room, 1) else text


def _chunks(rows: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """The rows in lists of at most ``_CHUNK`` rows, which end once they hold ``_CHUNK_CHARACTERS`` characters."""
    chunk, characters = [], 0
    for row in rows:
        chunk.append(row)
        characters += sum(map(len, row))
        if len(chunk) == _CHUNK or characters >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def truncate(
    ids: np.ndarray, offsets: np.ndarray, max_length: int, separator: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of an uncut ragged array cut to ``max_length`` tokens, each ending in its own last token ([SEP]).

    separator: the id of [SEP] if the rows are pairs. Of a pair the longer text is cut until both are of one length, and then
    both are cut ("longest first" in transformers).
    """
    lengths = np.diff(offsets)
    new_lengths = np.minimum(lengths, max_length)
    starts = np.repeat(offsets[:-1], lengths)
    place = np.arange(len(ids)) - starts  # of each token within its row
    keep = place == np.repeat(lengths - 1, lengths)  # the last token of each row
    if separator is None:
        keep |= place < np.repeat(new_lengths - 1, lengths)
    else:
        middle = np.flatnonzero((ids == separator) & ~keep) - offsets[:-1]  # (rows,) place of the first [SEP]
        first, second, room = middle - 1, lengths - middle - 2, max_length - 3
        half = np.where(first <= second, room // 2, room - room // 2)  # of the first text, if both must be cut
        of_first = np.minimum(first, np.maximum(room - second, half))
        of_second = np.minimum(second, room - of_first)
        middle, of_first, of_second = (np.repeat(x, lengths) for x in (middle, of_first, of_second))
        keep |= (place <= of_first) | ((place >= middle) & (place <= middle + of_second))
    return ids[keep], np.concatenate([[0], np.cumsum(new_lengths)]).astype(np.int64)


def take(ids: np.ndarray, offsets: np.ndarray, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The given rows of a ragged array, in the given order."""
    rows = np.asarray(rows, dtype=np.int64)
    lengths = np.diff(offsets)[rows]
    new = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    where = np.arange(new[-1]) - np.repeat(new[:-1], lengths) + np.repeat(offsets[:-1][rows], lengths)
    return ids[where], new
