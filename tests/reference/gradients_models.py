"""Derivatives of small models, with whole Jacobians and Hessians of some."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import families_nn as nn
from gradients import Gradients
from gradients_nn import patches
from gradients_ops import integers, normal


def dense_models(f):
    f.program("mlp_loss", """%h1 = matmul %x, %w1
      %h2 = add %h1, %b1
      %h3 = tanh %h2
      %h4 = matmul %h3, %w2
      %h5 = add %h4, %b2
      %e = sub %h5, %t
      %s = mul %e, %e
      %y = reduce %s {op = mean, axes = [0, 1]}""",
              lambda x, t, w1, b1, w2, b2: jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2 - t) ** 2),
              {"x": normal(4, 3), "t": normal(4, 2), "w1": normal(3, 5), "b1": normal(5), "w2": normal(5, 2),
               "b2": normal(2)})
    f.program("layer_norm_mlp", """%n = layer_norm %x, %g, %b
      %h1 = matmul %n, %w1
      %h2 = gelu %h1
      %h3 = matmul %h2, %w2
      %r = add %x, %h3
      %s = mul %r, %r
      %y = reduce %s {op = mean, axes = [0, 1]}""",
              lambda x, g, b, w1, w2: jnp.mean(
                  (x + jax.nn.gelu(nn.layer_norm(x, g, b) @ w1, approximate=False) @ w2) ** 2),
              {"x": normal(3, 4), "g": normal(4), "b": normal(4), "w1": normal(4, 6), "w2": normal(6, 4)})
    f.program("classifier", """%h1 = matmul %x, %w1
      %h2 = relu %h1
      %z = matmul %h2, %w2
      %l = softmax_cross_entropy_with_logits %z, %t
      %y = reduce %l {op = mean, axes = [0]}""",
              lambda x, t, w1, w2: jnp.mean(nn.cross_entropy(jax.nn.relu(x @ w1) @ w2, t)),
              {"x": normal(4, 3), "t": integers(3, 4), "w1": normal(3, 5), "w2": normal(5, 3)})
    f.program("log_softmax_classifier", """%z = matmul %x, %w
      %l = reduce %z {op = log_sum_exp, axes = [1], keep_dim = true}
      %p = sub %z, %l
      %q = mul %p, %t
      %s = reduce %q {op = sum, axes = [0, 1]}
      %y = neg %s""", lambda x, t, w: -jnp.sum(jax.nn.log_softmax(x @ w, 1) * t),
              {"x": normal(4, 3), "t": np.eye(3)[[0, 2, 1, 1]], "w": normal(3, 3)}, hessian=True)


def hessians(f):
    def logistic(x, t, w, b):
        z = x @ w + b
        return jnp.sum(jax.nn.softplus(z) - t * z)

    f.program("logistic", """%m = matmul %x, %w
      %z = add %m, %b
      %p = softplus %z
      %q = mul %t, %z
      %d = sub %p, %q
      %y = reduce %d {op = sum, axes = [0, 1]}""",
              logistic, {"x": normal(5, 3), "t": np.array([[0.0], [1.0], [1.0], [0.0], [1.0]]),
                         "w": normal(3, 1), "b": normal(1)}, hessian=True)
    f.program("rosenbrock", """%a = narrow %x {axis = 0, start = 0, len = 3}
      %b = narrow %x {axis = 0, start = 1, len = 3}
      %aa = mul %a, %a
      %d = sub %b, %aa
      %dd = mul %d, %d
      %hundred = constant 100.0 : f64[]
      %first = mul %dd, %hundred
      %one = constant 1.0 : f64[]
      %e = sub %one, %a
      %ee = mul %e, %e
      %all = add %first, %ee
      %y = reduce %all {op = sum, axes = [0]}""",
              lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), {"x": normal(4)},
              hessian=True)
    f.program("jacobian_of_layer", """%h = matmul %x, %w
      %z = add %h, %b
      %y = softmax %z {axis = 1}""", lambda x, w, b: jax.nn.softmax(x @ w + b, 1),
              {"x": normal(2, 3), "w": normal(3, 2), "b": normal(2)}, jacobian=True)


def attention_models(f):
    def block(x, g, b, wq, wk, wv, wo):
        n = nn.layer_norm(x, g, b)
        heads = lambda w: (n @ w).reshape(1, 3, 2, 2).transpose(0, 2, 1, 3)
        mask = np.tril(np.ones((3, 3), bool))
        o = nn.attend(heads(wq), heads(wk), heads(wv), mask=mask)[0]
        return x + o.transpose(0, 2, 1, 3).reshape(1, 3, 4) @ wo

    projections = {k: normal(4, 4) for k in ("wq", "wk", "wv", "wo")}
    body = """%q = matmul %n, %wq
      %k = matmul %n, %wk
      %v = matmul %n, %wv
      %o = attention %q, %k, %v {num_heads = 2, head_dim = 2, mask_kind = causal}
      %p = matmul %o, %wo
      %y = add %x, %p"""
    f.program("attention_block", "%n = layer_norm %x, %g, %b\n" + body, block,
              {"x": normal(1, 3, 4), "g": normal(4), "b": normal(4), **projections})
    f.program("attention_without_norm", body.replace("%n", "%x"),
              block_without_norm, {"x": normal(1, 3, 4), **projections})
    f.program("embedding_lookup", """%e = gather %t, %i {axis = 0}
      %h = matmul %e, %w
      %a = tanh %h
      %y = reduce %a {op = mean, axes = [0, 1]}""", lambda t, i, w: jnp.mean(jnp.tanh(t[i] @ w), (0, 1)),
              {"t": normal(5, 3), "i": np.array([[0, 2, 2], [4, 0, 2]], np.int32), "w": normal(3, 2)})


def block_without_norm(x, wq, wk, wv, wo):
    heads = lambda w: (x @ w).reshape(1, 3, 2, 2).transpose(0, 2, 1, 3)
    o = nn.attend(heads(wq), heads(wk), heads(wv), mask=np.tril(np.ones((3, 3), bool)))[0]
    return x + o.transpose(0, 2, 1, 3).reshape(1, 3, 4) @ wo


def conv_models(f):
    def net(x, t, w1, w2, w3):
        h = jax.nn.gelu(nn.conv(x, w1, (1, 1), (1, 1), (1, 1), 1), approximate=False)
        h = patches(h, (2, 2), (2, 2), (0, 0), -np.inf).max(-1)
        h = jnp.tanh(nn.conv(h, w2, (1, 1), (0, 0), (1, 1), 1))
        return jnp.mean(nn.cross_entropy(h.reshape(2, -1) @ w3, t))

    f.program("conv_net", """%c1 = conv %x, %w1 {padding = [1, 1]}
      %r = gelu %c1
      %p = pool %r {kind = max, kernel_size = [2, 2], stride = [2, 2]}
      %c2 = conv %p, %w2
      %a = tanh %c2
      %v = reshape %a {new_shape = [2, 8]}
      %z = matmul %v, %w3
      %l = softmax_cross_entropy_with_logits %z, %t
      %y = reduce %l {op = mean, axes = [0]}""",
              net, {"x": normal(2, 1, 6, 6), "t": integers(3, 2), "w1": normal(2, 1, 3, 3), "w2": normal(2, 2, 2, 2),
               "w3": normal(8, 3)})


def recurrent_models(f):
    def loss(xs, t, w, u):
        h, _ = lax.scan(lambda h, x: (jnp.tanh(x @ w + h @ u), None), jnp.zeros((2, 3)), xs)
        return jnp.sum((h - t) ** 2)

    f.program("rnn_loss", """%h0 = constant splat 0.0 : f64[2, 3]
      %h = scan %h0, %w, %u, %xs {length = 5, num_bcast = 2, num_xs = 1} body {
        %p = input "p" : f64[2, 3]
        %w = input "w" : f64[2, 3]
        %u = input "u" : f64[3, 3]
        %x = input "x" : f64[2, 2]
        %a = matmul %x, %w
        %b = matmul %p, %u
        %s = add %a, %b
        %n = tanh %s
        return %n
      }
      %e = sub %h, %t
      %q = mul %e, %e
      %y = reduce %q {op = sum, axes = [0, 1]}""", loss,
              {"xs": normal(5, 2, 2), "t": normal(2, 3), "w": normal(2, 3), "u": normal(3, 3) * 0.5})
    f.program("least_squares", """%at = transpose %a {perm = [1, 0]}
      %g = matmul %at, %a
      %r = matmul %at, %b
      %y = dense_solve %g, %r""", lambda a, b: jnp.linalg.solve(a.T @ a, a.T @ b),
              {"a": normal(5, 3), "b": normal(5, 1)})


def families():
    f = Gradients("models")
    dense_models(f)
    hessians(f)
    attention_models(f)
    conv_models(f)
    recurrent_models(f)
    return [f]
