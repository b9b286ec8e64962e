"""A filter for an image of bytes, and its edges: a script for NumPy that knows nothing of Supremum."""

import numpy as np


def data():
    """An image of bytes and the kernel of the filter."""
    y, x = np.indices((12, 15))
    image = (x * y * 5 + 20 * (x > 7)) % 256
    kernel = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]) / 16.0
    return image.astype("uint8"), kernel.astype("float32")


def run(image, kernel):
    """The filtered image, its edges, and its brightness."""
    height, width = image.shape
    padded = np.pad(image, 1, mode="reflect")
    smooth = np.zeros_like(image, dtype="float32")
    for i in range(3):
        for j in range(3):
            smooth += kernel[i, j] * padded[i : i + height, j : j + width]
    filtered = np.clip(np.round(smooth), 0, 255).astype("uint8")
    rows, columns = np.gradient(smooth)
    edges = np.sqrt(rows**2 + columns**2)
    edges /= np.max(edges)
    normal = smooth - np.mean(smooth, dtype="float32")
    normal /= np.std(smooth)
    counts, bounds = np.histogram(filtered, bins=8, range=(0, 256))
    levels, uses = np.unique(filtered[::3, ::3], return_counts=True)
    return {
        "filtered": filtered,
        "edges": edges,
        "framed": np.pad(filtered, ((1, 0), (2, 3)), constant_values=255),
        "normal": normal,
        "flat": np.isclose(smooth[1:], smooth[:-1], rtol=0.05, atol=0.5),
        "counts": counts,
        "bounds": bounds,
        "levels": levels,
        "uses": uses,
        "dark and bright": np.percentile(smooth, 5.0) + np.percentile(smooth, 95.0),
        "row": np.convolve(smooth[4], kernel[1], mode="valid"),
    }
