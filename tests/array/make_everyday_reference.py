"""Writes tests/array/{everyday,signal}_values.inc: what PyTorch, JAX and SciPy give for the calls of {everyday,signal}_test.cpp."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

T = torch.tensor
x = np.array([-2.5, -1.0, -0.0, 0.0, 0.5, 3.0], np.float32)
p = np.array([0.1, 0.5, 0.9], np.float32)
m = np.arange(12, dtype=np.float32).reshape(3, 4) ** 1.5 - 5
gaps = np.where(np.isin(np.arange(12).reshape(3, 4), [1, 6, 8, 9, 10, 11]), np.nan, m).astype(np.float32)
image = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
line = np.sin(np.arange(14, dtype=np.float32)).reshape(1, 2, 7)

CASES = {
    "cbrt": jnp.cbrt(x), "copysign": jnp.copysign(jnp.array([1.0, -2, 3, 4, -5, 6]), x), "signbit": jnp.signbit(x),
    "deg2rad": jnp.deg2rad(x), "rad2deg": jnp.rad2deg(x), "frac": torch.frac(T(x)), "heaviside": jnp.heaviside(x, 0.5),
    "fmax": jnp.fmax(jnp.array([np.nan, 1, np.nan]), jnp.array([1, np.nan, np.nan])),
    "fmin": jnp.fmin(jnp.array([np.nan, 1, 3]), jnp.array([1, np.nan, 2])),
    "logit": torch.logit(T(p)), "sinc": jnp.sinc(x), "sinc_slope": jax.vmap(jax.grad(jnp.sinc))(x),
    "xlogy": jax.scipy.special.xlogy(jnp.array([0.0, 2, 0]), jnp.array([0.0, 3, np.nan])),
    "polyval": jnp.polyval(jnp.array([2.0, -1, 0.5]), x),
    "nanmax": jnp.nanmax(gaps, 1), "nanmin": jnp.nanmin(gaps, 0), "nanvar": jnp.nanvar(gaps, 0),
    "nanstd": jnp.nanstd(gaps), "logmeanexp": jax.nn.logmeanexp(m, 1), "trapezoid": jnp.trapezoid(m, dx=0.5),
    "cov": jnp.cov(m), "corrcoef": jnp.corrcoef(m), "column_stack": jnp.column_stack([p, 2 * p]),
    "dstack": jnp.dstack([m, m + 1]), "array_split": jnp.array_split(x, 4)[1], "block_diag": torch.block_diag(T(m), T(p)),
    "vander": jnp.vander(p, 4), "pixel_shuffle": F.pixel_shuffle(T(image), 2),
    "pixel_unshuffle": F.pixel_unshuffle(F.pixel_shuffle(T(image), 2), 2),
    "addmm": torch.addmm(T(p), T(m), T(m.T.copy())), "multi_dot": jnp.linalg.multi_dot([m, m.T, m]),
    "cdist": torch.cdist(T(m), T(m + 1)), "pairwise_distance": F.pairwise_distance(T(m), T(m[::-1].copy())),
    "logdet": torch.logdet(T(np.array([[2.0, 1], [1, 3]], np.float32))),
    "max_pool1d": F.max_pool1d(T(line), 3, 2, 1), "avg_pool1d": F.avg_pool1d(T(line), 2),
    "softmin": F.softmin(T(m), 1), "hardtanh": F.hardtanh(T(x)), "hardshrink": F.hardshrink(T(x)),
    "softshrink": F.softshrink(T(x)), "tanhshrink": F.tanhshrink(T(x)), "threshold": F.threshold(T(x), 0.2, -7.0),
    "prelu": F.prelu(T(image - 40), T(np.arange(8, dtype=np.float32) / 8)), "squareplus": jax.nn.squareplus(x),
    "standardize": jax.nn.standardize(m, epsilon=1e-5), "instance_norm": F.instance_norm(T(image)),
    "smooth_l1_loss": F.smooth_l1_loss(T(x), T(-x), beta=0.7),
    "margin_ranking_loss": F.margin_ranking_loss(T(p), T(p[::-1].copy()), T([1.0, -1, 1]), margin=0.3),
    "triplet_margin_loss": F.triplet_margin_loss(T(m), T(m + 1), T(m * 1.1)),
    "gaussian_nll_loss": F.gaussian_nll_loss(T(p), T(p * 2), T([0.5, 1.0, 0.0])),
}



jax.config.update("jax_enable_x64", True)
import scipy.special as special  # noqa: E402
import scipy.stats as stats  # noqa: E402

fft = np.fft
z = np.array([0.1 + 1j, 0.2 - 0.5j, 0.3 + 0.25j, -0.4, 2.0])
grid = np.sin(0.7 * np.arange(24.0)).reshape(4, 6)
rows = np.arange(15.0).reshape(5, 3) - 4
ids = np.array([0, 2, 2, 0, 2])
wide = np.array([-3.7, -2.25, -0.5, 0.1, 0.5, 1.0, 1.5, 2.0, 3.3, 10.0, 171.5, 1e5])
shares = np.array([1e-300, 1e-20, 1e-3, 0.02425, 0.3, 0.5, 0.7, 0.999, 1 - 1e-12])
inner = np.array([-1 + 1e-15, -0.999999, -0.7, 0.0, 1e-30, 0.3, 0.95, 1 - 1e-10])


def parts(v):
    v = np.asarray(v)
    return np.stack([v.real, v.imag])


def slopes(f, v):
    return jax.vmap(jax.grad(f))(jnp.array(v))


SIGNAL = {
    "fft": parts(fft.fft(z)), "fft_real": parts(fft.fft(grid)), "fft_axis": parts(fft.fft(grid, axis=0)),
    "fft_long": parts(fft.fft(z, 8)), "fft_short": parts(fft.fft(z, 3)), "ifft": parts(fft.ifft(z)),
    "rfft": parts(fft.rfft(grid)), "rfft_long": parts(fft.rfft(grid, 9)), "irfft": fft.irfft(z), "irfft_odd": fft.irfft(z, 9),
    "fft2": parts(fft.fft2(grid)), "ifft2": parts(fft.ifft2(grid)), "fftn": parts(fft.fftn(grid.reshape(2, 2, 6))),
    "rfft2": parts(fft.rfft2(grid)), "fftshift": fft.fftshift(grid), "ifftshift": fft.ifftshift(np.arange(5.0)),
    "fftfreq": fft.fftfreq(7, 0.5), "fftfreq_even": fft.fftfreq(6), "rfftfreq": fft.rfftfreq(6), "angle": np.angle(z),
    "fft_slope": jax.grad(lambda v: jnp.sum(jnp.abs(jnp.fft.fft2(v)) ** 3))(jnp.array(grid)),
    "convolve": np.convolve(grid[0], [1.0, 2, -1, 0.5]), "convolve_same": np.convolve(grid[0], [1.0, 2, -1, 0.5], "same"),
    "convolve_valid": np.convolve([1.0, 2], grid[0], "valid"), "correlate": np.correlate(grid[0], [1.0, 2, -1], "valid"),
    "correlate_full": np.correlate([1.0, 2, -1], grid[0], "full"), "correlate_same": np.correlate(grid[0], [1.0, 2, -1, 4], "same"),
    "hanning": np.hanning(7), "hamming": np.hamming(6), "blackman": np.blackman(5),
    "segment_sum": jax.ops.segment_sum(rows, ids, 4), "segment_prod": jax.ops.segment_prod(rows, ids, 4),
    "segment_max": jax.ops.segment_max(rows, ids, 3)[::2], "segment_min": jax.ops.segment_min(rows, ids, 3)[::2],
    "histogram": np.histogram(grid, 5)[0], "histogram_edges": np.histogram(grid, 5)[1],
    "histogram_range": np.histogram(np.array([0, 1, 2, 3, 4, 2, -1]), 4, (0, 4))[0],
    "unique": np.unique(np.array([3.0, 1, 3, -2, 1])), "isin": np.isin([[1, 2], [3, 4]], [4, 1, 7]),
    "argwhere": np.argwhere(rows[:2] > -3), "tril_rows": np.tril_indices(3, -1)[0], "tril_columns": np.tril_indices(3, -1)[1],
    "triu_rows": np.triu_indices(3)[0], "unravel_columns": np.unravel_index(np.array([0, 7, 23]), (2, 3, 4))[2],
    "unravel_middle": np.unravel_index(np.array([0, 7, 23]), (2, 3, 4))[1],
    "select": np.select([rows < -1, rows > 5], [rows * 2, rows * 10], 7.0),
    "erfinv": special.erfinv(inner), "erfinv_slope": np.sqrt(np.pi) / 2 * np.exp(special.erfinv(inner[1:7]) ** 2),
    "lgamma": special.gammaln(wide), "lgamma_slope": special.digamma(wide), "digamma": special.digamma(wide),
    "digamma_slope": special.polygamma(1, wide[3:]), "betaln": special.betaln([0.5, 2.0, 30.0], [1.5, 3.0, 0.1]),
    "ndtr": special.ndtr(wide[:10]), "ndtri": special.ndtri(shares), "ndtri_slope": slopes(jax.scipy.special.ndtri, shares[2:8]),
    "normal_logpdf": stats.norm.logpdf(wide, 0.5, 2.0), "entr": special.entr(np.array([-1.0, 0.0, 0.5, 2.0])),
    "xlog1py": special.xlog1py([0.0, 2, -1], [-1.0, 3, 0.5]), "cumlogsumexp": jax.lax.cumlogsumexp(jnp.array(rows[:, 0])),
    "associative": jnp.cumprod(jnp.array([1.5, -2, 0.5, 3, 1, -1, 2]), 0),
}


def number(v):
    return "NAN" if np.isnan(v) else repr(float(np.float32(v)))


def wide_number(v):
    return "NAN" if np.isnan(v) else ("INFINITY" if v > 0 else "-INFINITY") if np.isinf(v) else repr(float(v))


for cases, file, text in (CASES, "everyday_values.inc", number), (SIGNAL, "signal_values.inc", wide_number):
    lines = ["// Written by make_everyday_reference.py."]
    for name, value in cases.items():
        values = np.asarray(value).astype(np.float64).ravel()
        lines.append('{"%s", {%s}},' % (name, ", ".join(text(v) for v in values)))
    open(__file__.replace("make_everyday_reference.py", file), "w").write("\n".join(lines) + "\n")
