"""A pretrained encoder whose embedding matrix is cut to the word pieces of some texts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from rtxlib.data.tokenization import add_ends
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder, without_weights


@torch.no_grad()
def with_vocabulary_of(
    encoder: Encoder, tokenizer: PreTrainedTokenizerFast, texts: Iterable[str]
) -> tuple[Encoder, PreTrainedTokenizerFast]:
    """The encoder and its tokenizer with only the word pieces that ``texts`` need, and every single character.

    A text of ``texts`` keeps its pieces, and so its states, because WordPiece takes the longest piece it knows and no piece
    that it took is gone. Any other text can still be written, letter by letter.

    Raises InputError for a tokenizer that is not WordPiece.
    """
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    if described["model"]["type"] != "WordPiece":
        raise InputError(f"Only a vocabulary of WordPiece can be cut, not one of {described['model']['type']}.")
    backend = Tokenizer.from_str(json.dumps(described))
    backend.no_truncation()
    used: set[int] = set()
    for encoding in backend.encode_batch_fast(list(texts), add_special_tokens=False):
        used.update(encoding.ids)
    special = {token["content"]: token["id"] for token in described["added_tokens"]}  # some may be in no vocabulary
    pieces = sorted((described["model"]["vocab"] | special).items(), key=lambda item: item[1])
    wanted = [
        (piece, number)
        for piece, number in pieces
        if number in used or piece in special or len(piece.removeprefix("##")) == 1
    ]
    vocabulary = {piece: number for number, (piece, _) in enumerate(wanted)}
    described["model"]["vocab"] = vocabulary
    for token in described["added_tokens"]:
        token["id"] = vocabulary[token["content"]]
    described["post_processor"] = None  # it names ids; every encoder here takes [CLS] text [SEP]
    backend = Tokenizer.from_str(json.dumps(described))
    add_ends(backend, tokenizer.cls_token, tokenizer.sep_token)
    config = copy.deepcopy(encoder.config)
    settings = {name: getattr(tokenizer, name) for name in ("model_max_length", "model_input_names")}
    smaller = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        clean_up_tokenization_spaces=False,
        **tokenizer.special_tokens_map,
        **settings,
    )
    config.vocab_size, config.pad_token_id = len(wanted), smaller.pad_token_id
    with without_weights():
        cut = Encoder(config)
    state = encoder.state_dict()
    rows = torch.tensor([number for _, number in wanted])
    state["embeddings.token.weight"] = state["embeddings.token.weight"][rows]
    cut.load_state_dict(state, assign=True)
    return cut.eval(), smaller
