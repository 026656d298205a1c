"""The transforms in NumPy and SciPy, each on as many threads as it has; and products with weights in
few bits, decoded first: their values are compared, their times are not."""

import os

import numpy as np
import scipy
import scipy.fft

from packed import decoded
from worker import serve

FRAME, HOP = 512, 128
PACKED = ("q4_k", "int8", "code_rows")


class PureCase:
    """A function of nothing that gives an array."""

    def __init__(self, function):
        self.function = function

    def reset(self):
        pass

    def call(self):
        self.result = self.function()

    def wait(self):
        pass

    def outputs(self):
        return {"y": self.result}


def stft(x, rfft):
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(x, FRAME, axis=-1)[..., ::HOP, :]
    return lambda: rfft(frames * window)


def product(workload, feeds):
    x, w = feeds["x"], decoded(workload, feeds)
    if workload == "code_rows":
        sums = x.astype(np.int32) @ w.astype(np.int32)
        return lambda: np.clip(np.rint(sums * 1e-6), -128, 127).astype(np.int8)
    if workload == "q4_k_experts":
        return lambda: np.stack([row @ w[e] for row, e in zip(x, feeds["i"])])
    return lambda: x @ w.reshape(w.shape[-2:])


class ScipyPeer:
    def version(self):
        return "SciPy " + scipy.__version__

    def variants(self, workload):
        if workload.startswith(PACKED):
            return ["numpy"]
        return ["numpy", "scipy", "scipy_threads"] if workload.startswith(("fft", "stft")) else []

    def make(self, workload, variant, feeds, settings):
        if workload.startswith(PACKED):
            return PureCase(product(workload, feeds))
        x = feeds["x"]
        module = np.fft if variant == "numpy" else scipy.fft
        options = {"workers": os.cpu_count()} if variant == "scipy_threads" else {}
        if workload == "stft":
            return PureCase(stft(x, lambda f: module.rfft(f, **options)))
        if workload == "fft_512x512":
            return PureCase(lambda: module.fft2(x, **options))
        return PureCase(lambda: module.fft(x, **options))


if __name__ == "__main__":
    serve(ScipyPeer())
