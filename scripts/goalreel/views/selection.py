"""Choose the episodes to film from all that were played, and say how rare they are."""

from collections.abc import Mapping, Sequence

import numpy as np

from goalreel.errors import GoalreelError, pluralize
from goalreel.simulation.played_episodes import PlayedEpisodes
from goalreel.simulation.reaches import has_reached
from goalreel.views.triggers import check_returns, select_episodes

_NEAR = 0.1  # standard deviations within which returns, or steps, are alike
_ITERATIONS = 25  # at most, of k-means


def choose_episodes(
    select: Sequence[int] | Mapping, success: str | float, played: PlayedEpisodes
) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen episodes, and how many of all episodes are as rare as each.

    The numbers of the episodes ascend. The count is of failed episodes, of those near it, in its
    cluster, or with at most (at least, if they are higher) its value. Raises GoalreelError if
    `film.select` chooses none.
    """
    options = select if isinstance(select, Mapping) else {"list": select}
    (kind,), rows = options.keys() - {"by"}, played.rows
    by_steps = options.get("by") == "steps"
    values = rows.steps if by_steps else rows.return_
    check_returns(rows)
    if kind == "failed":
        has_failed = ~has_reached(success, rows.terminated, rows.truncated, rows.return_)
        alike = np.full(len(played), has_failed.sum())
        chosen = np.flatnonzero(has_failed)[: select["failed"]]
        if not len(chosen):
            raise GoalreelError(
                f"film.select.failed: None of {pluralize(len(played), 'episode')} failed. Choose "
                f"others, such as worst, or change success ('{success}')."
            )
    elif kind == "rarest":
        alike = _count_near(values, rows.terminated + 2 * rows.truncated)
        farthest = -np.abs(values - np.median(values))
        chosen = np.lexsort((farthest, alike))[: select["rarest"]]
    elif kind == "clusters":
        features = (played.last_states.T, rows.return_, rows.terminated, rows.truncated)
        points = np.nan_to_num(np.vstack(features).T)
        points = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-9)
        labels, chosen = cluster(points, select["clusters"])
        alike = np.bincount(labels)[labels]
    else:
        chosen, ordered = select_episodes(select, rows), np.sort(values)
        is_low = (kind == "best") == by_steps or kind not in ("best", "worst")
        at_most = np.searchsorted(ordered, values, "right")
        alike = at_most if is_low else len(values) - np.searchsorted(ordered, values, "left")
    chosen = np.sort(chosen)
    return chosen, alike[chosen]


def _count_near(values: np.ndarray, endings: np.ndarray) -> np.ndarray:
    """Return how many values of the same ending are near each value, itself included."""
    near, counts = _NEAR * values.std(), np.empty(len(values), np.int64)
    for ending in np.unique(endings):
        same = endings == ending
        ordered = np.sort(values[same])
        first = np.searchsorted(ordered, values[same] - near, "left")
        counts[same] = np.searchsorted(ordered, values[same] + near, "right") - first
    return counts


def cluster(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster of each point, (n, numbers), and the point nearest to each center.

    This is k-means (Lloyd, 1982) that starts as k-means++ (Arthur and Vassilvitskii, 2007), with a
    fixed seed. There are fewer clusters if there are fewer different points.
    """
    rng, centers = np.random.default_rng(0), points[:1]
    while len(centers) < count:
        _, distances = _nearest(points, centers)
        if not distances.any():
            break
        drawn = rng.choice(len(points), p=distances / distances.sum())
        centers = np.vstack([centers, points[drawn]])
    labels, _ = _nearest(points, centers)
    for _ in range(_ITERATIONS):
        centers = np.array([points[labels == label].mean(axis=0) for label in np.unique(labels)])
        before, (labels, distances) = labels, _nearest(points, centers)
        if np.array_equal(before, labels):
            break
    _, labels = np.unique(labels, return_inverse=True)
    order = np.lexsort((distances, labels))
    return labels, order[np.searchsorted(labels[order], np.arange(labels.max() + 1))]


def _nearest(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest center of each point and the square of its distance."""
    labels, least = np.zeros(len(points), np.int64), np.full(len(points), np.inf)
    for label, center in enumerate(centers):
        distances = np.square(points - center).sum(axis=1)
        labels[distances < least] = label
        least = np.minimum(least, distances)
    return labels, least
