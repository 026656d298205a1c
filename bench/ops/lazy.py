"""Modules that are loaded when something of them is first used.

Cases are described next to their twins in JAX and PyTorch. The driver and the check read the
descriptions without having either, and each peer's process loads its own system alone.
"""

import importlib


class Lazy:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(importlib.import_module(self._name), attribute)


jax = Lazy("jax")
jnp = Lazy("jax.numpy")
jsp = Lazy("jax.scipy")
lax = Lazy("jax.lax")
nn = Lazy("jax.nn")
torch = Lazy("torch")
F = Lazy("torch.nn.functional")
np = Lazy("numpy")
