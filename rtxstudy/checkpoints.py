"""Whether a pretrained model can be read on this machine."""

from __future__ import annotations

from rtxlib.errors import InputError
from rtxlib.models.pretrained import find


def out_of_reach(source: str) -> str | None:
    """Why a checkpoint or its weights cannot be read here, in a sentence; None if they can."""
    try:
        folder = find(source)
        if not any(folder.glob("model*.safetensors")):
            return f"{source} is here without its weights."
    except InputError as error:
        return str(error)
    return None
