"""Statistics of samples with missing values, in groups: a script for NumPy that knows nothing of Supremum."""

import numpy as np


def data():
    """Samples with missing values, and the group of each."""
    n = np.arange(40)
    samples = np.stack([np.sin(n), np.cos(2.0 * n), n % 7 / 7.0], axis=1).astype("float32")
    samples[3, 0] = samples[17, 2] = samples[18, 2] = np.nan
    return samples, (n * n % 5).astype("int16")


def run(samples, groups):
    """The statistics by name."""
    known = np.where(np.isnan(samples), np.nanmean(samples, axis=0), samples)
    medians = np.median(known, axis=0)
    scaled = known - medians
    scaled /= np.std(known, axis=0)
    correlation = np.einsum("ni,nj->ij", scaled, scaled)
    correlation /= len(samples)
    if not np.allclose(correlation, correlation.T, rtol=1e-3):
        raise ArithmeticError("the correlation must be symmetric")
    names, sizes = np.unique(groups, return_counts=True)
    totals = np.bincount(groups, weights=known[:, 0])
    counts, _ = np.histogram(known[:, 1], bins=6, range=(-1.0, 1.0))
    window = np.full_like(known[:3, 2], 0.25)
    return {
        "missing": np.count_nonzero(np.isnan(samples), axis=0),
        "total": np.nansum(samples, axis=0),
        "medians": medians,
        "quartiles": np.hstack([np.quantile(known, 0.25, axis=0), np.percentile(known, 75.0, axis=0)]),
        "correlation": correlation,
        "names": names,
        "sizes": sizes,
        "totals": totals,
        "counts": counts,
        "smooth": np.convolve(known[:, 2], window, mode="same"),
        "spread": np.linalg.norm(scaled, axis=0),
        "extremes": np.vstack([np.min(known, axis=0), np.max(known, axis=0)]),
    }
