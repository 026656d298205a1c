"""Writes tests/array/everyday_values.inc: what PyTorch and JAX give for the calls of everyday_test.cpp."""

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


def number(v):
    return "NAN" if np.isnan(v) else repr(float(np.float32(v)))


lines = ["// Written by make_everyday_reference.py."]
for name, value in CASES.items():
    values = np.asarray(value).astype(np.float64).ravel()
    lines.append('{"%s", {%s}},' % (name, ", ".join(number(v) for v in values)))
open(__file__.replace("make_everyday_reference.py", "everyday_values.inc"), "w").write("\n".join(lines) + "\n")
