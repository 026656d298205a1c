"""The transforms in NumPy and SciPy, each on as many threads as it has."""

import os

import numpy as np
import scipy
import scipy.fft

from worker import serve

FRAME, HOP = 512, 128


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


class ScipyPeer:
    def version(self):
        return "SciPy " + scipy.__version__

    def variants(self, workload):
        return ["numpy", "scipy", "scipy_threads"] if workload.startswith(("fft", "stft")) else []

    def make(self, workload, variant, feeds, settings):
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
