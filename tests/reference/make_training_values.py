#!/usr/bin/env python3
"""Writes tests/reference/training/optimizers.npz and schedules.npz: where each optimiser is after 10 and
100 steps on a small problem, and what each schedule gives.

    python3 -m venv venv && venv/bin/pip install numpy scipy jax optax==0.2.8 torch pytorch-optimizer==4.1.0 \\
        transformers==5.23.0
    venv/bin/python tests/reference/make_training_values.py

Most cases are runs of optax in f64. SOAP is pytorch-optimizer's for matrices, beside PyTorch's AdamW; it
rounds its QR factors to f32. PSGD's Kronecker form is written out here in NumPy from the paper's formulas,
with the mean over its probes in closed form: packages draw probes of their own, which no two runs share. So
are the two problems L-BFGS is tried on, whose minima SciPy finds. The falling part of inverse_sqrt is
transformers'.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytorch_optimizer
import scipy.optimize
import torch
import transformers

jax.config.update("jax_enable_x64", True)
OUT = Path(__file__).parent / "training"
STEPS = (10, 100)


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


DATA = {"x": numbers(1, 8, 3), "y": numbers(2, 8, 4)}
START = {"a": numbers(3, 3, 4), "w": numbers(4, 4, 4), "b": numbers(5, 4)}
CURVES = {name: 0.5 + np.abs(numbers(6 + i, *value.shape)) for i, (name, value) in enumerate(START.items())}


def network(p):
    """A layer of tanh and a linear one: the mean of squared differences."""
    return jnp.mean((jnp.tanh(DATA["x"] @ p["a"]) @ p["w"] + p["b"] - DATA["y"]) ** 2)


def separable(p):
    """Its Hessian is diagonal, so that any random signs estimate it without an error."""
    return sum(jnp.sum(0.5 * CURVES[k] * p[k] ** 2 + 0.1 * p[k] ** 4) for k in p)


def run_optax(optimizer, loss=network, evaluated=None, extra=False):
    @jax.jit
    def step(params, state):
        gradient = jax.grad(loss)(params)
        more = {"obj_fn": loss} if extra else {}
        updates, state = optimizer.update(gradient, state, params, **more)
        return optax.apply_updates(params, updates), state

    params = {k: jnp.asarray(v) for k, v in START.items()}
    state = optimizer.init(params)
    kept = {}
    for t in range(1, max(STEPS) + 1):
        params, state = step(params, state)
        if t in STEPS:
            shown = evaluated(state, params) if evaluated else params
            kept[t] = {k: np.asarray(v) for k, v in shown.items()}
    return kept


def run_numpy(make_rule):
    """`make_rule(shape)` gives a function from param, gradient and step to the next param."""
    gradient_of = jax.jit(jax.grad(network))
    params = {k: v.copy() for k, v in START.items()}
    rules = {k: make_rule(v.shape) for k, v in params.items()}
    kept = {}
    for t in range(1, max(STEPS) + 1):
        gradient = {k: np.asarray(v) for k, v in gradient_of(params).items()}
        params = {k: rules[k](params[k], gradient[k], t) for k in params}
        if t in STEPS:
            kept[t] = {k: v.copy() for k, v in params.items()}
    return kept


def psgd_rule(shape, rate=2e-2, beta1=0.9, decay=0.01, factor_rate=0.1, clip=1.1, interval=2):
    m = np.zeros(shape)
    matrix = len(shape) == 2
    q = [np.eye(n) for n in shape] if matrix else [np.ones(shape)]

    def moved(factor, outer, y):
        scale = factor_rate / np.linalg.norm(outer + y)
        if not matrix:
            return factor - scale * (outer - y) * factor
        return factor - scale * np.triu(outer - y) @ factor

    def refreshed(x):
        if not matrix:
            return [moved(q[0], (q[0] * x) ** 2, q[0] ** -2.0)]
        inverses = [np.linalg.inv(f @ f.T) for f in q]
        white = q[0] @ x @ q[1].T
        return [
            moved(q[0], white @ white.T, inverses[0] * np.trace(np.linalg.inv(q[1].T @ q[1]))),
            moved(q[1], white.T @ white, inverses[1] * np.trace(np.linalg.inv(q[0].T @ q[0]))),
        ]

    def rule(p, g, t):
        nonlocal m, q
        m = beta1 * m + (1 - beta1) * g
        first = m / (1 - beta1**t)
        if (t - 1) % interval == 0:
            q = refreshed(first)
        u = q[0].T @ q[0] @ first @ q[1].T @ q[1] if matrix else q[0] ** 2 * first
        u = u / max(1, np.sqrt(np.mean(u**2)) / clip)
        return p - rate * (u + decay * p)

    return rule


def run_soap(rate=3e-2, decay=0.01):
    """Of what is no matrix AdamW takes care, as there is no basis to turn it into."""
    params = {k: torch.nn.Parameter(torch.tensor(v)) for k, v in START.items()}
    x, y = (torch.tensor(DATA[k]) for k in ("x", "y"))
    matrices = pytorch_optimizer.SOAP([params["a"], params["w"]], lr=rate, betas=(0.95, 0.95), eps=1e-8,
                                      weight_decay=decay, precondition_frequency=10)
    others = torch.optim.AdamW([params["b"]], lr=rate, betas=(0.95, 0.95), eps=1e-8, weight_decay=decay)
    kept = {}
    for t in range(1, max(STEPS) + 1):
        matrices.zero_grad()
        others.zero_grad()
        loss = torch.mean((torch.tanh(x @ params["a"]) @ params["w"] + params["b"] - y) ** 2)
        loss.backward()
        matrices.step()
        others.step()
        if t in STEPS:
            kept[t] = {k: v.detach().numpy().copy() for k, v in params.items()}
    return kept


def inverse_sqrt(peak, steps):
    """What falls, behind the steps that keep the peak."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    schedule = transformers.get_inverse_sqrt_schedule(optimizer, num_warmup_steps=0, timescale=steps)
    falling = schedule.lr_lambdas[0]
    return lambda t: peak * (falling(t - (steps - 1)) if t >= steps else 1.0)


def muon(rate, decay, nesterov):
    """optax's, with plain AdamW for what is no matrix."""
    matrices = optax.contrib.muon(rate, weight_decay=decay, nesterov=nesterov)
    others = optax.adamw(rate, weight_decay=decay)
    return optax.partition({"muon": matrices, "adam": others}, {"a": "muon", "w": "muon", "b": "adam"})


def with_decay(decay, optimizer):
    return optax.chain(optax.add_decayed_weights(decay), optimizer)


def nadam_with_decay(rate, decay):
    return optax.nadamw(rate, weight_decay=decay)


def optimizer_cases():
    free = optax.contrib.schedule_free_adamw(2e-2, b1=0.9, b2=0.99, weight_decay=0.02)
    curved = optax.contrib.sophia(1e-2, update_interval=3, weight_decay=0.01, gamma=0.5)
    warmed = optax.warmup_cosine_decay_schedule(0.0, 5e-2, 10, 80)
    return {
        "sgd": run_optax(optax.sgd(0.1)),
        "sgd_momentum": run_optax(optax.sgd(0.05, momentum=0.9)),
        "sgd_nesterov": run_optax(with_decay(0.02, optax.sgd(0.05, momentum=0.9, nesterov=True))),
        "adam": run_optax(with_decay(0.02, optax.adam(2e-2, b2=0.99))),
        "adamw": run_optax(optax.adamw(2e-2, weight_decay=0.1)),
        "adamw_cosine": run_optax(optax.adamw(warmed, weight_decay=0.1)),
        "nadam": run_optax(nadam_with_decay(2e-2, 0.05)),
        "radam": run_optax(optax.radam(2e-2)),
        "lamb": run_optax(optax.lamb(2e-2, weight_decay=0.1)),
        "lion": run_optax(optax.lion(3e-3, weight_decay=0.1)),
        "rmsprop": run_optax(optax.rmsprop(1e-2)),
        "rmsprop_centered": run_optax(
            optax.rmsprop(1e-2, decay=0.95, centered=True, momentum=0.5, nesterov=True, eps=1e-2)
        ),
        "adagrad": run_optax(optax.adagrad(0.1)),
        "adafactor": run_optax(optax.adafactor(5e-2, min_dim_size_to_factor=3)),
        "adafactor_momentum": run_optax(
            optax.adafactor(5e-2, momentum=0.9, weight_decay_rate=1e-3, multiply_by_parameter_scale=False)
        ),
        "muon": run_optax(muon(2e-2, 0.05, True)),
        "muon_plain": run_optax(muon(2e-2, 0.0, False)),
        "soap": run_soap(),
        "psgd_kron": run_numpy(psgd_rule),
        "schedule_free": run_optax(free),
        "schedule_free_averaged": run_optax(free, evaluated=optax.contrib.schedule_free_eval_params),
        "sophia": run_optax(curved, loss=separable, extra=True),
    }


def logistic_regression():
    """Weights of an L2-regularised logistic regression, as SciPy finds them."""
    x, labels = numbers(20, 30, 5), (numbers(21, 30) > 0).astype(float)

    def loss(w):
        z = x @ w
        return np.mean(np.logaddexp(0, z) - labels * z) + 0.05 * np.sum(w**2)

    def gradient(w):
        return x.T @ (1 / (1 + np.exp(-(x @ w))) - labels) / len(labels) + 0.1 * w

    found = scipy.optimize.minimize(loss, np.zeros(5), jac=gradient, method="BFGS", options={"gtol": 1e-12})
    return {"lbfgs.x": x, "lbfgs.labels": labels, "lbfgs.w": found.x, "lbfgs.loss": np.array(found.fun)}


def schedule_cases():
    return {
        "constant": optax.constant_schedule(0.3),
        "linear": optax.linear_schedule(0.1, 0.02, 40, 10),
        "polynomial": optax.polynomial_schedule(0.1, 0.01, 2.5, 50, 5),
        "cosine": optax.cosine_decay_schedule(0.2, 60, alpha=0.1),
        "warm_cosine": optax.warmup_cosine_decay_schedule(0.01, 0.2, 15, 70, 0.002),
        "exponential": optax.exponential_decay(0.5, 20, 0.7, transition_begin=7),
        "staircase": optax.exponential_decay(0.5, 20, 0.7, staircase=True, end_value=0.2),
        "one_cycle": optax.cosine_onecycle_schedule(90, 0.4, 0.3, 25.0, 1e4),
        "piecewise": optax.piecewise_constant_schedule(0.4, {20: 0.5, 55: 0.1}),
        "warm_up": optax.warmup_constant_schedule(0.05, 0.3, 25),
        "joined": optax.join_schedules(
            [optax.linear_schedule(0.0, 0.1, 12), optax.exponential_decay(0.1, 10, 0.5)], [12]
        ),
        "inverse_sqrt": inverse_sqrt(0.3, 20),
    }


def main():
    OUT.mkdir(exist_ok=True)
    arrays = {f"start.{k}": v for k, v in {**START, **DATA}.items()}
    arrays |= {f"curve.{k}": v for k, v in CURVES.items()}
    for case, kept in optimizer_cases().items():
        arrays |= {f"{case}.{t}.{k}": v for t, params in kept.items() for k, v in params.items()}
    np.savez(OUT / "optimizers.npz", **arrays, **logistic_regression())
    steps = np.arange(121)
    values = {k: np.array([float(s(int(t))) for t in steps]) for k, s in schedule_cases().items()}
    np.savez(OUT / "schedules.npz", **values)


if __name__ == "__main__":
    main()
