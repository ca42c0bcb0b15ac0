"""The intervals are those of the literature and of SciPy."""

import numpy as np
import pytest

from goalreel.report.statistics import (
    mean_interval,
    paired_difference,
    share_interval,
    student_quantile,
    trainings_difference,
    trainings_interval,
)

# R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine
# 17 (1998), table I, method 3.
SHARES = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)]
RANDOM = np.random.default_rng(1)
# scipy.stats.bootstrap(method="BCa", n_resamples=200_000) of SciPy 1.17.1.
MEANS = [
    (RANDOM.normal(size=20), (-0.2425, 0.2681)),
    (RANDOM.exponential(size=30), (1.0233, 2.3128)),
    (RANDOM.exponential(size=100), (0.8136, 1.2143)),
    (RANDOM.exponential(size=2000), (0.9380, 1.0229)),
    ((RANDOM.random(100) < 0.05) * 1.0, (0.0400, 0.1500)),
    # scipy.stats.t.interval, for few values
    (np.array([0.0, 1.0]), (-5.8531, 6.8531)),
]


@pytest.mark.parametrize(("successes", "trials", "low", "high"), SHARES)
def test_share_interval_is_the_published_one(successes, trials, low, high):
    interval = share_interval(successes, trials)
    assert np.allclose((interval.low, interval.high), (low, high), atol=5e-5, rtol=0)
    mirrored = share_interval(trials - successes, trials)
    assert np.allclose((mirrored.low, mirrored.high), (1 - high, 1 - low), atol=5e-5, rtol=0)


@pytest.mark.parametrize(("values", "bounds"), MEANS)
def test_mean_interval_is_that_of_scipy(values, bounds):
    interval = mean_interval(values)
    assert interval.value == pytest.approx(values.mean())
    width = bounds[1] - bounds[0]
    assert np.allclose((interval.low, interval.high), bounds, atol=0.03 * width, rtol=0)


@pytest.mark.parametrize(
    ("a", "b", "counts", "sentence"),
    [
        ([1.5, 2, 3], [1.5, 2, 3], (0, 3, 0), "equal returns"),
        ([1, 2, 3], [3, 4, 5], (3, 0, 0), "new is better by 2"),
        ([3, 4, 5], [1, 2, 3], (0, 0, 3), "old is better by 2"),
        ([0.1 + 0.2, 1], [0.3, 1], (0, 2, 0), "equal returns"),
        ([1, 2, 3], [2, 2, 2], (1, 1, 1), "no difference shown (95%: −2.5 to 2.5)"),
        ([10, 10, 10, 10], [12, 13, 14, 11], (4, 0, 0), "new is better by 2.5 (95%: 0.4 to 4.6)"),
        ([1], [4], (1, 0, 0), "one seed, new − old: 3"),
        # A sign test of five unequal seeds has p = 0.06, however many are equal.
        ([2] * 600, [2] * 599 + [3], (1, 599, 0), "no difference shown (95%: 0.0000 to 0.0100)"),
        ([2] * 400, [2] * 395 + [3] * 5, (5, 395, 0), "no difference shown (95%: 0.000 to 0.028)"),
        (
            [2] * 600,
            [2] * 590 + [3] * 10,
            (10, 590, 0),
            "new is better by 0.017 (95%: 0.008 to 0.030)",
        ),
    ],
)
def test_paired_difference_counts_and_words(a, b, counts, sentence):
    difference = paired_difference(a, b)
    assert (difference.wins, difference.ties, difference.losses) == counts
    assert difference.sentence("old", "new") == sentence


@pytest.mark.parametrize("count", [2, 3, 5, 10, 30])
def test_interval_covers_the_true_mean(count):
    samples = np.random.default_rng(3).normal(size=(400, count))
    intervals = [mean_interval(sample) for sample in samples]
    assert np.mean([i.low <= 0 <= i.high for i in intervals]) > 0.91


def test_interval_of_unbounded_values_is_unknown():
    for values in ([1.0, np.nan], [np.inf, -np.inf], [np.inf, 1.0]):
        interval = mean_interval(values)
        assert not np.isfinite(interval.value) and np.isnan([interval.low, interval.high]).all()
    assert mean_interval([1e110, 3e110, 2e110]).low < 2e110


def test_interval_does_not_depend_on_order_or_direction():
    values = np.random.default_rng(5).exponential(size=40)
    interval = mean_interval(values)
    assert mean_interval(values[::-1]) == interval
    assert -mean_interval(-values) == interval


def test_detectable_difference_is_detected_with_its_power():
    noise = np.random.default_rng(2).normal(size=(2000, 30))
    least = paired_difference(np.zeros(30), noise[0] / noise[0].std(ddof=1)).detectable
    shown = [paired_difference(np.zeros(30), row + least).is_shown for row in noise]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.05)


# scipy.stats.t.ppf(0.975, freedom) of SciPy 1.17.1.
@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706204736), (1.3, 7.5005293), (2, 4.3026527297), (4.7, 2.6207260754)]
    + [(9, 2.2621571628), (29, 2.0452296421), (1000, 1.9623390808)],
)
def test_student_quantile_is_that_of_scipy(freedom, quantile):
    assert student_quantile(freedom) == pytest.approx(quantile, rel=1e-6)


def test_trainings_have_the_intervals_of_student_and_welch():
    # scipy.stats: t.interval(0.95, 2, 4, sem(b)), ttest_ind(b, a, equal_var=False) of SciPy 1.17.1.
    a, b = [1.0, 2.0, 1.5, 1.8], [3.0, 4.0, 5.0]
    interval, difference = trainings_interval(b), trainings_difference(a, b)
    assert (interval.low, interval.high) == pytest.approx((1.5158622882, 6.4841377118), rel=1e-5)
    assert (difference.mean.low, difference.mean.high) == pytest.approx(
        (0.2638830439, 4.5861169561)
    )
    assert difference.is_shown and difference.sentence("A", "B").startswith("B is better by 2.4")
    assert (difference.wins, difference.ties, difference.losses) == (12, 0, 0)
    assert trainings_difference(a, a).ties == 4 and np.isnan(trainings_interval([3.0]).low)
