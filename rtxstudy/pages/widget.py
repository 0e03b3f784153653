"""The pages in a notebook: what is changed in a page is read in Python, and the other way round."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets

from rtxlib.errors import InputError, nearest
from rtxstudy.pages import static

SETTINGS = (
    "tokens", "target", "d_model", "heads", "layers", "d_ff", "seed", "norm_placement", "norm", "position", "feedforward",
    "recurrent_depth", "residual_scale", "training", "dropout", "draw", "edits",
)  # fmt: skip
SWIGLU_SETTINGS = ("beta", "w1", "b1", "w2", "b2", "x", "compare")


class _Explorer(anywidget.AnyWidget):
    """A page in a cell's output. ``state`` is all that it stands at; assigning to it, or :meth:`set`, changes the page."""

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
        """Raises InputError for what no message to the page can carry."""
        try:
            json.dumps(proposal["value"], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"A page's state is plain JSON, without NaN or infinity: {error}.") from None
        return proposal["value"]

    def set(self, **settings: Any) -> None:
        """Change some settings and leave the others. Raises InputError for one there is none of."""
        self.state = self.state | self._known(settings)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        """The widget and, for a report or any reader without a kernel, the static page in a frame."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        weights = {"run": self.run} if self.has_trait("run") and self.run else {}
        return data | {"text/html": static.iframe(self.page, self.state | weights)}, metadata


class TransformerExplorer(_Explorer):
    """``TransformerExplorer(tokens=["the", "cat"], d_model=8)`` as the last line of a cell shows the page.

    ``state`` is all that the page stands at, a dict; assigning to it, or :meth:`set`, changes the page. What is left out is
    as the page begins, and what the page cannot be (heads that do not divide d_model, say) it mends: what it made of a
    state is back in ``state`` once it has drawn.
    """

    page = "transformer"
    settings = SETTINGS
    _esm = static.module("transformer")
    _css = static.style("transformer")
    run = traitlets.Dict(None, allow_none=True).tag(sync=True)
    numbers = traitlets.Dict().tag(sync=True)

    def __init__(self, run: str | None = None, **settings: Any) -> None:
        """settings: of :data:`SETTINGS`. run: a trained run of the store, whose weights the page takes instead of drawn ones.

        Raises InputError for a setting there is none of, or a run that :func:`rtxstudy.pages.weights.packed` refuses.
        """
        weights = None
        if run is not None:
            from rtxlib import paths
            from rtxlib.runs import store
            from rtxstudy.pages.weights import packed

            weights = packed(store.find(paths.runs_dir(), run))
        super().__init__(settings, run=weights)

    @property
    def attention(self) -> np.ndarray:
        """The encoder's attention weights (layers, heads, queries, keys); with R passes R·N layers, in their order."""
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
        """What the model says: (target tokens, words), each row of what follows; of a trained classifier (1, labels)."""
        return self._number("probabilities")

    def _number(self, name: str) -> np.ndarray:
        """Raises InputError until the page has computed the present state: it does so in the browser, once it is shown."""
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
        """settings: of :data:`SWIGLU_SETTINGS`. Raises InputError for one there is none of."""
        super().__init__(settings)
