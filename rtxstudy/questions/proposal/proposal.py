"""The claims of the study's proposal, and of the notes on the field that came before it, as a table of data.

The study ``components`` publishes its comparisons as "A − B" of :func:`rtxstudy.comparisons.compare`, where B is the recurrent
encoder A with one switch, such as "… layernorm", and the study ``longer_texts`` as "rotary, 256 tokens − 64 tokens". Until they
do, their claims are not measured.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rtxstudy.questions.proposal.proposal_measured import Claim, Measured, Tables, difference, norm_time, of_runs, ratio
from rtxstudy.statistics import MARGIN

TOLERANCE = 0.05  # a number that is given with two digits may differ by this share


def proposal(standard: str, recurrent: str, unshared: str, passes: int, data: str) -> list[Claim]:
    """The claims of the proposal and of the notes on the field that can be measured.

    standard, recurrent: names of the two encoders. unshared: the standard encoder of the recurrent one's width, with as many
    layers as all its passes. data: the label of the headline data. "Comparable" loses less than :data:`MARGIN`.
    """
    inside, every = "non_embedding_parameters", "parameters"
    outside_table = "parameters outside the embedding matrix"

    def saved(column: str) -> Callable[[Tables], Measured | None]:
        share_of = ratio(of_runs(column, recurrent, data), of_runs(column, standard, data))

        def measure(tables: Tables) -> Measured | None:
            share = share_of(tables)
            return share and Measured(1 - share.value)

        return measure

    def about(number: float) -> tuple[float, float]:
        return number * (1 - TOLERANCE), number * (1 + TOLERANCE)

    minus = f"accuracy of {recurrent} minus that of"
    switched = f"{recurrent} minus the same encoder with"
    return [
        Claim(
            "The baseline has about 9.8 million parameters.",
            "proposal 4",
            f"parameters of {standard}",
            "million",
            *about(9.8),
            of_runs(every, standard, data, 1e-6),
        ),
        Claim(
            "The baseline has about 9.8 million parameters.",
            "proposal 4",
            f"{outside_table} of {standard}",
            "million",
            *about(9.8),
            of_runs(inside, standard, data, 1e-6),
        ),
        Claim(
            "The recurrent model has about 3.4 million parameters.",
            "proposal 4",
            f"parameters of {recurrent}",
            "million",
            *about(3.4),
            of_runs(every, recurrent, data, 1e-6),
        ),
        Claim(
            "The recurrent model has about 3.4 million parameters.",
            "proposal 4",
            f"{outside_table} of {recurrent}",
            "million",
            *about(3.4),
            of_runs(inside, recurrent, data, 1e-6),
        ),
        Claim(
            "The recurrent model has 64 % fewer parameters.",
            "proposal 5",
            "share of the parameters that is saved",
            "",
            0.635,
            np.inf,
            saved(every),
        ),
        Claim(
            "The recurrent model has 64 % fewer parameters.",
            "proposal 5",
            f"share of the {outside_table} that is saved",
            "",
            0.635,
            np.inf,
            saved(inside),
        ),
        Claim(
            "A recurrent model has one R-th of the parameters, R being its passes.",
            "proposal 2",
            f"parameters of {recurrent} over those of {unshared}",
            "",
            *about(1 / passes),
            ratio(of_runs(every, recurrent, data), of_runs(every, unshared, data)),
        ),
        Claim(
            "A recurrent model has one R-th of the parameters, R being its passes.",
            "proposal 2",
            f"{outside_table} of {recurrent} over those of {unshared}",
            "",
            *about(1 / passes),
            ratio(of_runs(inside, recurrent, data), of_runs(inside, unshared, data)),
        ),
        Claim(
            "The recurrent model is smaller: it needs half of the memory.",
            "proposal 2",
            "megabytes of the weights, recurrent over standard",
            "",
            -np.inf,
            0.5,
            ratio(of_runs("size_mb", recurrent, data), of_runs("size_mb", standard, data)),
        ),
        Claim(
            "Performance is comparable.",
            "proposal 5",
            f"{minus} {standard}; comparable: it loses less than the margin",
            "points",
            -MARGIN,
            np.inf,
            difference(recurrent, standard, data),
        ),
        Claim(
            "The recurrent model shows measurable performance gains.",
            "proposal 2",
            f"{minus} {standard}; a gain: above zero",
            "points",
            0,
            np.inf,
            difference(recurrent, standard, data),
        ),
        Claim(
            "A recurrent model can generalise better.",
            "proposal 2",
            f"{minus} {standard}, on a source that they were not trained on",
            "points",
            0,
            np.inf,
            difference(recurrent, standard, study="transfer", table="carried_over"),
        ),
        Claim(
            "RMSNorm computes faster than LayerNorm.",
            "proposal 2, notes",
            "time of RMSNorm over that of LayerNorm, forward and backward",
            "",
            -np.inf,
            1,
            norm_time,
        ),
        Claim(
            "RMSNorm performs like LayerNorm, or better.",
            "proposal 2, notes",
            f"{switched} LayerNorm; it loses less than the margin",
            "points",
            -MARGIN,
            np.inf,
            difference(recurrent, f"{recurrent} layernorm", study="components"),
        ),
        Claim(
            "SwiGLU gains one to two points over GELU.",
            "notes on the field",
            f"{switched} GELU; at least one point",
            "points",
            0.01,
            np.inf,
            difference(recurrent, f"{recurrent} gelu", study="components"),
        ),
        Claim(
            "RoPE carries beyond the length of training.",
            "notes on the field",
            "read to 256 tokens minus read to 64, after training on 64; other positions may gain as much (notebook 04)",
            "points",
            0,
            np.inf,
            difference("rotary, 256 tokens", "64 tokens", study="longer_texts"),
        ),
        Claim(
            "Training takes about 30 minutes a model on a GPU.",
            "proposal 6",
            f"wall clock of {standard} under the published protocol on a GPU, shared with others; an upper limit",
            "minutes",
            *about(30),
            of_runs("train_seconds", standard, f"{data} 33%", 1 / 60, published_on_gpu=True),
        ),
    ]
