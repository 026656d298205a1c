"""One peer of the survey in a process of its own: peer.py jax, or peer.py torch.

It answers what bench/peers/worker.py says; a workload is the name of a case. A case here is the
twin's function of the feeds, jitted in JAX, and with `grad` in the variant the gradient of its
first result in some of the feeds, from a cotangent `d_output`.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "peers"), str(HERE.parent / "programs")]
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
from worker import serve

import catalogue

WIDE = {"f64", "c128", "i64"}
INDICES = {"i", "ids", "labels"}  # feeds that PyTorch wants in 64 bits


def first(results):
    return results[0] if isinstance(results, (tuple, list)) else results


def listed(results):
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


class JaxPeer:
    def __init__(self):
        import jax
        self.jax = jax

    def variants(self, _):
        return ["jit"]

    def version(self):
        return f"jax {self.jax.__version__}"

    def make(self, name, _, feeds, __):
        one = catalogue.case_named(name)
        dtypes = {feed.dtype for feed in one.feeds.values()} | {"i64" if "i64" in one.text else ""}
        self.jax.config.update("jax_enable_x64", bool(dtypes & WIDE))
        return JaxCase(self.jax, one, feeds)


class JaxCase:
    def __init__(self, jax, one, feeds):
        self.jax, self.one = jax, one
        names = list(one.feeds)
        arrays = [self.array(feeds[n], one.feeds[n].dtype) for n in names]
        places = [names.index(n) for n in one.wrt]
        if one.with_value:
            both = jax.value_and_grad(one.jax, tuple(places))
            self.function = jax.jit(lambda *a: (lambda v, g: (v, *g))(*both(*a)))
        elif one.gradient:
            seed = feeds["d_output"]
            narrow = one.feeds[names[places[0]]].dtype == "bf16" and seed.dtype == np.float32
            arrays.append(self.array(seed, "bf16" if narrow else None))
            self.function = jax.jit(lambda *a: self.gradients(places, a[:-1], a[-1]))
        else:
            self.function = jax.jit(lambda *a: listed(one.jax(*a)))
        self.arrays = jax.device_put(arrays)

    def array(self, a, dtype):
        return self.jax.numpy.asarray(a, "bfloat16") if dtype == "bf16" else np.array(a)

    def gradients(self, places, arrays, seed):
        def function(*wanted):
            every = list(arrays)
            for place, a in zip(places, wanted):
                every[place] = a
            return first(self.one.jax(*every))

        value, pull = self.jax.vjp(function, *[arrays[i] for i in places])
        return pull(seed.astype(value.dtype).reshape(value.shape))

    def reset(self):
        self.jax.block_until_ready(self.arrays)

    def call(self):
        self.result = self.function(*self.arrays)

    def wait(self):
        self.jax.block_until_ready(self.result)

    def outputs(self):
        return {str(i): widened(np.asarray(a)) for i, a in enumerate(self.result)}


def widened(a):
    return a.astype(np.float32) if a.dtype.name == "bfloat16" else a


class TorchPeer:
    def __init__(self):
        import torch
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.torch = torch

    def variants(self, name):
        one = catalogue.case_named(name)
        return [] if one.torch is None else ["eager", "compile"]

    def version(self):
        return f"torch {self.torch.__version__}"

    def make(self, name, variant, feeds, _):
        return TorchCase(self.torch, catalogue.case_named(name), feeds, variant == "compile")


class TorchCase:
    def __init__(self, torch, one, feeds, compiled):
        self.torch, self.one, self.function = torch, one, one.torch
        if compiled:
            torch.compiler.reset()
            self.function = torch.compile(one.torch)
        self.arrays = {n: self.tensor(n, feeds[n], one.feeds[n].dtype) for n in one.feeds}
        self.wanted = [self.arrays[n].requires_grad_() for n in one.wrt]
        self.seed = torch.from_numpy(feeds["d_output"].copy()) if one.seeded else None

    def tensor(self, name, a, dtype):
        t = self.torch.from_numpy(np.array(a))
        if dtype == "bf16":
            return t.bfloat16()
        if name in INDICES:
            return t.long()
        return t.to(self.torch.int64) if dtype == "u32" else t

    def reset(self):
        pass

    def call(self):
        if self.one.with_value:
            value = self.function(*self.arrays.values())
            self.result = (value, *self.torch.autograd.grad(value, self.wanted))
        elif self.one.gradient:
            value = first(self.function(*self.arrays.values()))
            seed = self.seed.to(value.dtype).reshape(value.shape)
            self.result = self.torch.autograd.grad(value, self.wanted, seed)
        else:
            with self.torch.no_grad():
                self.result = listed(self.function(*self.arrays.values()))

    def wait(self):
        pass

    def outputs(self):
        wide = lambda t: t.float() if t.dtype == self.torch.bfloat16 else t
        return {str(i): wide(t.detach()).resolve_conj().numpy() for i, t in enumerate(self.result)}


if __name__ == "__main__":
    serve({"jax": JaxPeer, "torch": TorchPeer}[sys.argv[1]]())
