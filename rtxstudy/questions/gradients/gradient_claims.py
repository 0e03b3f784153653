"""Where does the gradient arrive, and does the residual keep it alive?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed
from rtxstudy.measured import GRADIENT_ROWS
from rtxstudy.names import short


def learning_pass(flow: pd.DataFrame) -> Claim:
    """The title of the gradient by pass; ``flow``: of ``measured.gradients``."""
    shares = flow.groupby(["model", "iteration"])["share"].mean().unstack("iteration")
    return claim(
        "The first pass contributes most of the gradient, {low:share} to {high:share}",
        holds=bool((shares.idxmax(axis=1) == shares.columns.min()).all()),
        low=shares.max(axis=1).min(),
        high=shares.max(axis=1).max(),
    )


def by_layer_title(by_layer: pd.DataFrame) -> Claim:
    norms = by_layer.groupby(["model", "depth"])["norm"].mean().unstack("depth")
    ratio = norms[norms.columns.min()] / norms[norms.columns.max()]
    loops = ratio[[name for name in ratio.index if name.startswith("recurrent")]]
    plain = ratio.drop(loops.index)
    return claim(
        "In the loops the early passes receive {low:.1f} to {high:.1f} times the gradient of the last",
        holds=len(loops) > 0 and len(plain) > 0 and loops.min() > 1,
        low=loops.min() if len(loops) else None,
        high=loops.max() if len(loops) else None,
    )


def bound(bounds: pd.DataFrame) -> list[Claim]:
    """Whether the residual keeps the gradient alive; ``bounds``: of ``measured.state_gradients``, trained and untrained."""
    below = bounds[bounds["least"] < bounds["bound"]] if len(bounds) else bounds
    forms = list(dict.fromkeys(short(form) for form in bounds["model"])) if len(bounds) else []
    return [
        claim(
            "In the {n:word} forms of the loop that were measured ({forms}), on each of {texts} training texts, before training "
            "and after it, the gradient that reaches pass t of R is at least α^(R−t) of that at the last one, as the proposal "
            "claims (α is the weight of the old state).",
            holds=below.empty,
            n=len(forms) or None,
            forms=listed(forms) or None,
            texts=GRADIENT_ROWS,
        )
    ]


def bound_title(bounds: pd.DataFrame) -> Claim:
    trained = bounds[bounds["weights"] == "trained"]
    return claim(
        "The gradient stays above the claimed bound on every text that was read",
        holds=bool((trained["least"] >= trained["bound"]).all()),
        n=len(trained) or None,
    )
