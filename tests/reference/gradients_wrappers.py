"""Derivatives of ops that hold others: fused blocks, regions, functions with rules of their own,
checkpoints, and scans that save their steps' inner values."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import families_nn as nn
from gradients import Gradients

RNG = np.random.default_rng(23)  # its own, so that other families keep their numbers


def normal(*shape):
    return RNG.standard_normal(shape)


def block(hidden, qkv_w, out_w, mask=None, qkv_b=0.0, out_b=0.0, tables=None, cap=None):
    """hidden [B, S, W], two heads of width two."""
    qkv = hidden @ qkv_w + qkv_b
    q, k, v = jnp.split(qkv, 3, -1)
    if tables is not None:
        q, k = (nn.rope(x, *tables, 2, 2, "neox") for x in (q, k))
    heads = lambda x: x.reshape(*x.shape[:2], 2, 2).transpose(0, 2, 1, 3)
    o = nn.attend(heads(q), heads(k), heads(v), mask=mask, cap=cap)[0]
    return o.transpose(0, 2, 1, 3).reshape(*hidden.shape[:2], 4) @ out_w + out_b


def attention_blocks(f):
    causal = np.tril(np.ones((3, 3), bool))
    weights = {"x": normal(2, 3, 4), "qkv": normal(4, 12) * 0.5, "o": normal(4, 4) * 0.5}
    f.program("attention_block", """%y = fused_attention_block %x, %qkv, %o
      {num_heads = 2, head_dim = 2, mask_kind = causal}""", lambda x, w, o: block(x, w, o, mask=causal), weights)
    biases = {"qb": normal(12), "ob": normal(4)}
    f.program("attention_block_biases", """%y = fused_attention_block %x, %qkv, %o, %qb, %ob
      {num_heads = 2, head_dim = 2, has_bias = true, mask_kind = none, attn_logit_softcap = 2.0}""",
              lambda x, w, o, qb, ob: block(x, w, o, qkv_b=qb, out_b=ob, cap=2.0), {**weights, **biases})
    angles = np.arange(3)[:, None] * 0.7
    f.program("attention_block_rope", """%y = fused_attention_block %x, %qkv, %o, %c, %s
      {num_heads = 2, head_dim = 2, has_rope = true, mask_kind = causal}""",
              lambda x, w, o, c, s: block(x, w, o, mask=causal, tables=(c, s)),
              {**weights, "c": np.cos(angles), "s": np.sin(angles)})


def regions(f):
    f.program("batch_region", """%y = batch_elementwise_region %a, %b
      {chain = [tanh(input(0)), mul(step(0), input(0)), exp(step(1))]}""",
              lambda a, b: jnp.concatenate([jnp.exp(jnp.tanh(p) * p) for p in (a, b)]),
              {"a": normal(2, 3), "b": normal(1, 3)})
    f.program("region", """%y = elementwise_region %a, %b
      {chain = [sigmoid(input(0)), mul(step(0), input(1)), sin(step(1))]}""",
              lambda a, b: jnp.sin(jax.nn.sigmoid(a) * b), {"a": normal(2, 3), "b": normal(3)})


def custom_functions(f):
    # The derivative of softplus(x)·w, written with the stable sigmoid, and with what fwd computed.
    f.program("custom_fn", """%y = custom_fn %x, %w {num_residuals = 1} fwd {
        %x = input "x" : f64[2, 3]
        %w = input "w" : f64[3]
        %p = softplus %x
        %y = mul %p, %w
        return %y, %p
      } vjp {
        %x = input "x" : f64[2, 3]
        %w = input "w" : f64[3]
        %y = input "primal_output" {role = primal_output} : f64[2, 3]
        %p = input "residual_0" {role = residual(0)} : f64[2, 3]
        %d = input "d_output" {role = d_output} : f64[2, 3]
        %s = sigmoid %x
        %sw = mul %s, %w
        %dx = mul %d, %sw
        %dp = mul %d, %p
        %dw = reduce %dp {op = sum, axes = [0]}
        return %dx, %dw
      } jvp {
        %x = input "x" : f64[2, 3]
        %w = input "w" : f64[3]
        %tx = input "tangent_0" {role = tangent(0)} : f64[2, 3]
        %tw = input "tangent_1" {role = tangent(1)} : f64[3]
        %s = sigmoid %x
        %sw = mul %s, %w
        %a = mul %sw, %tx
        %p = softplus %x
        %b = mul %p, %tw
        %t = add %a, %b
        return %t
      }""", lambda x, w: jax.nn.softplus(x) * w, {"x": normal(2, 3), "w": normal(3)})


LAYERS = """{
        %x = input "x" : f64[2, 3]
        %v = input "v" : f64[3, 4]
        %w = input "w" : f64[4, 3]
        %h = matmul %x, %v
        %a = tanh %h
        %b = matmul %a, %w
        %y = sin %b
        return %y
      }"""
CELL = """{
        %p = input "p" : f64[2, 3]
        %w = input "w" : f64[3, 3]
        %x = input "x" : f64[2, 3]
        %m = matmul %p, %w
        %g = sigmoid %m
        %a = mul %g, %x
        %n = tanh %a
        return %n
      }"""


def kept_values(f):
    def layers(x, v, w):
        return jax.checkpoint(lambda x, v, w: jnp.sin(jnp.tanh(x @ v) @ w))(x, v, w)

    for name, policy in (("checkpoint", ""), ("checkpoint_matmuls", "{policy = matmuls} "),
                         ("checkpoint_named", '{policy = named, names = ["a"]} ')):
        f.program(name, f"%y = checkpoint %x, %v, %w {policy}body {LAYERS}", layers,
                  {"x": normal(2, 3), "v": normal(3, 4), "w": normal(4, 3)})

    def run(h, w, xs):
        return lax.scan(lambda h, x: (jnp.tanh(jax.nn.sigmoid(h @ w) * x), None), h, xs)[0]

    for name, policy in (("all", "save = all"), ("matmuls", "save = matmuls"), ("recompute", "save = recompute"),
                         ("budget", "save_bytes = 200"), ("named", 'save = named, save_names = ["g"]')):
        counts = f"length = 4, num_bcast = 1, num_xs = 1, {policy}"
        f.program(f"scan_save_{name}", f"%y = scan %h, %w, %xs {{{counts}}} body {CELL}", run,
                  {"h": normal(2, 3), "w": normal(3, 3), "xs": normal(4, 2, 3)})


def families():
    f = Gradients("wrappers")
    attention_blocks(f)
    regions(f)
    custom_functions(f)
    kept_values(f)
    return [f]
