"""The pages as widgets of a notebook: Python sees every change in the page, and the page every change in Python."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets

from rtxlib.errors import InputError, nearest
from rtxstudy.pages import static

SETTINGS = (
    "weights", "step", "tokens", "target", "d_model", "heads", "layers", "d_ff", "seed", "norm_placement", "norm", "position",
    "feedforward", "recurrent_depth", "residual_scale", "training", "dropout", "draw", "edits", "colours", "notation",
)  # fmt: skip
SWIGLU_SETTINGS = ("beta", "w1", "b1", "w2", "b2", "w3", "x", "compare")


class _Explorer(anywidget.AnyWidget):
    """A page in the output of a cell. ``state`` is its whole state; assigning to it or :meth:`set` changes the page."""

    page: ClassVar[str]  # the folder of its modules
    settings: ClassVar[tuple[str, ...]]
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, settings: dict[str, Any], **traits: Any) -> None:
        super().__init__(state=self._known(settings), **traits)

    def _known(self, settings: dict[str, Any]) -> dict[str, Any]:
        for name in settings:
            if name not in self.settings:
                raise InputError(f"The page has no setting '{name}'.{nearest(name, self.settings)}")
        return settings

    @traitlets.validate("state")
    def _plain(self, proposal: Any) -> dict[str, Any]:
        """Raise ``InputError`` for a state that is not JSON, which no message to the page can carry."""
        try:
            json.dumps(proposal["value"], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"A page's state is plain JSON, without NaN or infinity: {error}.") from None
        return proposal["value"]

    def set(self, **settings: Any) -> None:
        """Change some settings and leave the others. Raises ``InputError`` for an unknown setting."""
        self.state = self.state | self._known(settings)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        """The widget and, for readers without a kernel such as the report, the static page in a frame."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        weights = {"run": self.run} if self.has_trait("run") and self.run else {}
        return data | {"text/html": static.iframe(self.page, self.state | weights)}, metadata


class TransformerExplorer(_Explorer):
    """``TransformerExplorer(tokens=["the", "cat"], d_model=8)`` as the last line of a cell shows the page.

    ``state`` is the whole state of the page, a dict; assigning to it, or :meth:`set`, changes the page. A field that is
    left out has its default. ``weights`` is "sentiment" or "reversal", which are trained, or "random". Without it, a state
    that names a size or a kind, such as d_model, has random weights, and any other the trained classifier. ``tokens`` may be
    a sentence. The page corrects an impossible value, such as a number of heads that does not divide d_model; the corrected
    value is in ``state`` after the page has drawn.
    """

    page = "transformer"
    settings = SETTINGS
    _esm = static.module("transformer")
    _css = static.style("transformer")
    run = traitlets.Dict(None, allow_none=True).tag(sync=True)
    numbers = traitlets.Dict().tag(sync=True)

    def __init__(self, run: str | None = None, **settings: Any) -> None:
        """``settings``: of :data:`SETTINGS`. ``run``: a trained run of the store, which gives the page its weights.

        Raises ``InputError`` for an unknown setting, or a run that :func:`rtxstudy.pages.weights.packed` refuses.
        """
        weights = None
        if run is not None:
            from rtx import archive
            from rtxlib import paths
            from rtxstudy.pages.weights import packed

            weights = packed(archive.find(paths.runs_dir(), run))
        super().__init__(settings, run=weights)

    @property
    def attention(self) -> np.ndarray:
        """The encoder's attention weights (layers, heads, queries, keys). R passes of N layers make R·N layers."""
        return self._number("attention")

    @property
    def decoder_attention(self) -> np.ndarray:
        """The decoder's attention to the target so far (layers, heads, queries, keys)."""
        return self._number("decoder_attention")

    @property
    def cross_attention(self) -> np.ndarray:
        """The decoder's attention to the source (layers, heads, target tokens, source tokens)."""
        return self._number("cross_attention")

    @property
    def probabilities(self) -> np.ndarray:
        """The model's output: (target tokens, words), each row the next word; for a trained classifier (1, labels)."""
        return self._number("probabilities")

    def _number(self, name: str) -> np.ndarray:
        """Raises ``InputError`` until the page is shown: it computes the present state in the browser."""
        if self.numbers.get("of") != self.state:
            raise InputError(
                "The page has not answered yet: show it as the last line of a cell, and read its numbers in a later cell."
            )
        return np.array(self.numbers[name])


class SwigluExplorer(_Explorer):
    """``SwigluExplorer(beta=2, compare=["relu"])`` as the last line of a cell shows the SwiGLU page."""

    page = "swiglu"
    settings = SWIGLU_SETTINGS
    _esm = static.module("swiglu")
    _css = static.style("swiglu")

    def __init__(self, **settings: Any) -> None:
        """``settings``: of :data:`SWIGLU_SETTINGS`. Raises ``InputError`` for an unknown setting."""
        super().__init__(settings)
