"""Tables of notebooks 03 and 11, computed from the tables that are measured on loops (:mod:`rtxstudy.measured`)."""

from __future__ import annotations

import pandas as pd

from rtxlib.errors import InputError
from rtxstudy.absent import Absent
from rtxstudy.questions.passes.worth import without_one_model, worth_of_passes
from rtxstudy.questions.summary.glance import learned


def by_layer(gradients: pd.DataFrame) -> pd.DataFrame:
    """The norm of the whole gradient of each unrolled layer, from the norms of its parameters.

    Columns: model, seed, ``depth`` (number of the unrolled layer, from 1), ``iteration`` (number of the pass, from 1), norm.
    """
    squares = gradients.assign(norm=gradients["norm"] ** 2)
    return squares.groupby(["model", "seed", "depth", "iteration"], sort=False)["norm"].sum().pow(0.5).reset_index()


def growth(states: pd.DataFrame, passes: int) -> pd.DataFrame:
    """The growth of the state per pass beyond the ``passes`` of training, for each form, before and after training.

    ``states``: columns form, weights, iteration, norm, accuracy. The gain is the geometric mean of the factors by which the
    norm, a mean over seeds, changes from one pass to the next.
    """
    rows = []
    for (form, weights), part in states.groupby(["form", "weights"], sort=False):
        means = part.groupby("iteration")[["norm", "accuracy"]].mean()
        last = means.index[-1]
        gain = (means["norm"][last] / means["norm"][passes]) ** (1 / (last - passes))
        row = {"form": form, "weights": weights, "gain per pass": gain, f"length after {last}": means["norm"][last]}
        if weights == "trained":
            row |= {f"accuracy after {after}": means["accuracy"][after] for after in (passes, last)}
        rows.append(row)
    return pd.DataFrame(rows).sort_values("weights", kind="stable")


def worth(errors: pd.DataFrame, counted: pd.DataFrame) -> pd.DataFrame | Absent:
    """φ of each data set, with the leave-one-model-out range of φ. Absent where one has too few runs, as with one seed.

    ``errors``: as :func:`rtxstudy.questions.passes.worth.errors` gives them. ``counted``: as
    :func:`rtxstudy.questions.summary.glance.learned` takes it. One row per data set: data, the fields of
    :class:`rtxstudy.questions.passes.worth.Worth`, the ends of the range, ``least`` and ``largest``, the fewest ``seeds`` of
    a model, and ``learned``: whether the mean accuracy of every model is above the majority class.
    """
    means = errors.assign(accuracy=1 - errors["error"]).groupby(["data", "model"])["accuracy"].mean().reset_index()
    means["learned"] = learned(means, counted)
    rows = []
    for data, runs in errors.groupby("data", sort=False):
        try:
            fit, spread = worth_of_passes(runs), without_one_model(runs)
        except InputError as few:
            return Absent(str(few))
        row = {
            "data": data,
            **fit._asdict(),
            **spread._asdict(),
            "seeds": int(runs.groupby("model")["seed"].nunique().min()),
        }
        rows.append(row | {"learned": bool(means.loc[means["data"] == data, "learned"].all())})
    return pd.DataFrame(rows)
