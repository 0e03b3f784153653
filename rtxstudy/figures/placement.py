"""Where the labels of a scatter plot go, so that no label covers another label, a mark or a line.

Each label chooses among 16 directions × 7 distances. Every choice has a cost: the cost of its own place, and a cost for
each pair of labels. All coordinates are in points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_ANGLES = np.deg2rad([0, 180, 90, 270, 45, 315, 135, 225, 22, 338, 158, 202, 68, 112, 292, 248])  # preferred first
_WAYS = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_GAPS = (2.5, 6.0, 14.0, 26.0, 42.0, 64.0, 95.0)  # points between a mark and its label
_LEADER = 8.0  # points; a label farther away gets a line to its mark


class Places(NamedTuple):
    """The k places of one label: its boxes, and its leaders (the lines from the mark's edge to the box's edge)."""

    boxes: np.ndarray  # (k, 4): left, bottom, right, top
    leads: np.ndarray  # (k, 2 ends, 2)
    drawn: np.ndarray  # (k,) whether the leader is long enough to be drawn


def choose(
    centres: np.ndarray, radii: np.ndarray, sizes: list[tuple[float, float]], lines: np.ndarray, frame: np.ndarray
) -> tuple[list[Places], np.ndarray]:
    """The places of each label and the number (n,) of the chosen one.

    ``centres`` (n or more, 2) and ``radii`` of the marks, ``sizes`` of the labels of the first n marks, ``lines`` (m, 2 ends, 2)
    to keep clear of, ``frame``: left, bottom, right and top of the axes.
    """
    labelled = zip(centres[: len(sizes)], radii[: len(sizes)], sizes, strict=True)
    places = [_places(centre, r, size) for centre, r, size in labelled]
    alone = np.stack([_cost_alone(option, i, centres, radii, lines, frame) for i, option in enumerate(places)])
    return places, _search(alone, places)


def _places(centre: np.ndarray, radius: float, size: tuple[float, float]) -> Places:
    """The places of a label of this size around a mark."""
    half, way = np.asarray(size) / 2, np.tile(_WAYS, (len(_GAPS), 1))  # (k, 2)
    gap = np.repeat(_GAPS, len(_WAYS))[:, None]
    # The box's nearest point lies `gap` outside the mark. In a horizontal or vertical direction the middle of the
    # box's side faces the mark.
    middle = centre + way * (radius + gap) + np.clip(way / 0.35, -1, 1) * half
    boxes = np.hstack([middle - half, middle + half])
    touch = np.clip(centre, boxes[:, :2], boxes[:, 2:])
    toward = (touch - centre) / np.maximum(np.hypot(*(touch - centre).T), 1e-9)[:, None]
    return Places(boxes, np.stack([centre + toward * radius, touch], axis=1), gap[:, 0] > _LEADER)


def _cost_alone(
    places: Places, mark: int, centres: np.ndarray, reach: np.ndarray, lines: np.ndarray, frame: np.ndarray
) -> np.ndarray:
    """Cost (k,) of each place by itself: for leaving the axes, for covering marks or lines, for being far away."""
    boxes, gap = places.boxes, np.repeat(_GAPS, len(_WAYS))
    cost = np.tile(np.arange(len(_WAYS)), len(_GAPS)) * 0.4 + gap * 0.5 + 12.0 * places.drawn  # _WAYS: preferred first
    outside = np.maximum(frame[:2] - boxes[:, :2], 0).sum(axis=1) + np.maximum(boxes[:, 2:] - frame[2:], 0).sum(axis=1)
    cost += 400 * (outside > 0) + 10 * outside
    for other, (centre, radius) in enumerate(zip(centres, reach, strict=True)):
        depth = radius + 1.0 - np.hypot(*(np.clip(centre, boxes[:, :2], boxes[:, 2:]) - centre).T)
        cost += np.where(depth > 0, 60 + 8 * depth, 0)
        if other != mark:  # a leader through another mark would seem to belong to that mark
            square = np.concatenate([centre - radius, centre + radius])[None]
            cost += 40 * (places.drawn & _hits(places.leads, square))
    return cost + 9 * _hits(lines[:, None], boxes).sum(axis=0)


def _cost_between(one: Places, two: Places) -> np.ndarray:
    """Cost (k, k) of each pair of places of two labels: for overlap, and for leaders through boxes or each other.

    It is 0 where what the two places cover, box and leader together, lies apart; so the rest is computed for the others alone.
    """
    (low_a, high_a), (low_b, high_b) = _covered(one), _covered(two)
    near = ((low_a[:, None] <= high_b[None] + 2) & (low_b[None] - 2 <= high_a[:, None])).all(axis=2)
    i, j = np.nonzero(near)
    a, b, drawn_a, drawn_b = one.boxes[i], two.boxes[j], one.drawn[i], two.drawn[j]
    overlap = np.minimum(a[:, 2:], b[:, 2:] + 2) - np.maximum(a[:, :2], b[:, :2] - 2)  # (pairs, 2)
    cost = np.where((overlap > 0).all(axis=1), 300 + overlap.clip(0).prod(axis=1), 0)
    cost += 40 * (_hits(one.leads[i], b) & drawn_a) + 40 * (_hits(two.leads[j], a) & drawn_b)
    cost += 30 * (_meet(one.leads[i], two.leads[j]) & drawn_a & drawn_b)
    every = np.zeros(near.shape)
    every[i, j] = cost
    return every


def _covered(places: Places) -> tuple[np.ndarray, np.ndarray]:
    """The lower left and the upper right corner (k, 2) of what each place covers."""
    boxes, leads = places.boxes, places.leads
    return np.minimum(boxes[:, :2], leads.min(axis=1)), np.maximum(boxes[:, 2:], leads.max(axis=1))


def _search(alone: np.ndarray, places: list[Places]) -> np.ndarray:
    """The place (n,) of each label with the least total cost, found by improving one label at a time from 60 starts.

    ``alone`` (n, k): the cost of each place by itself.
    """
    n, k = alone.shape
    pairs = np.zeros((n, n, k, k), dtype=np.float32)
    for i in range(n):
        for j in range(i):
            pairs[i, j] = _cost_between(places[i], places[j])
            pairs[j, i] = pairs[i, j].T
    rng, everyone = np.random.default_rng(0), np.arange(n)
    best, least = alone.argmin(axis=1), np.inf
    for start in range(60):
        chosen = alone.argmin(axis=1) if start == 0 else alone.argsort(axis=1)[everyone, rng.integers(0, k // 4, n)]
        moved = True
        while moved:
            moved = False
            for i in rng.permutation(n):
                cost = alone[i] + pairs[i, everyone, :, chosen].sum(axis=0)
                if cost.min() < cost[chosen[i]] - 1e-3:
                    chosen[i], moved = cost.argmin(), True
        total = alone[everyone, chosen].sum() + pairs[everyone[:, None], everyone, chosen[:, None], chosen].sum() / 2
        if total < least - 1e-3:
            best, least = chosen.copy(), total
    return best


def _hits(segments: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Whether each segment (…, 2 ends, 2) crosses its box (…, 4), by Liang and Barsky's clipping: shape (…)."""
    start, along = segments[..., 0, :], segments[..., 1, :] - segments[..., 0, :]
    along = np.where(np.abs(along) < 1e-9, 1e-9, along)
    low, high = (boxes[..., :2] - start) / along, (boxes[..., 2:] - start) / along
    return np.maximum(np.minimum(low, high).max(axis=-1), 0) < np.minimum(np.maximum(low, high).min(axis=-1), 1)


def _meet(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Whether each segment (…, 2 ends, 2) crosses its other segment (…, 2 ends, 2): shape (…)."""

    def side(from_: np.ndarray, to: np.ndarray, point: np.ndarray) -> np.ndarray:
        u, v = to - from_, point - from_
        return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]

    a, b, c, d = one[..., 0, :], one[..., 1, :], two[..., 0, :], two[..., 1, :]
    return (side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)
