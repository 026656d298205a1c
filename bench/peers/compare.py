"""Compares two NPZ files of results: compare.py OURS THEIRS TOLERANCE."""

import sys

import numpy as np


def gap(name, ours, theirs):
    """The largest difference, relative to the largest element; none between random numbers."""
    if ours.shape != theirs.shape:
        return float("inf")
    if name == "random":
        return 0.0
    wide = np.complex128 if np.iscomplexobj(ours) else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    difference = np.max(np.abs(a - b), initial=0.0)
    return float("inf") if np.isnan(difference) else difference / max(np.max(np.abs(a)), 1e-30)


def main():
    ours, theirs, tolerance = np.load(sys.argv[1]), np.load(sys.argv[2]), float(sys.argv[3])
    unmatched = sorted(set(ours.files) ^ set(theirs.files))
    if unmatched:
        print(f"FAILED: only one has {', '.join(unmatched)}")
        return 1
    worst, name = max((gap(name, ours[name], theirs[name]), name) for name in ours.files)
    good = worst <= tolerance
    print(f"{'ok' if good else 'FAILED'}: largest gap {worst:.1e} in {name}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
