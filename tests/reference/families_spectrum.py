"""Fourier transforms, frames and log-mel spectra: values of NumPy and SciPy, derivatives of JAX."""
import jax.numpy as jnp
import numpy as np
import scipy.fft
import scipy.signal

from gradients import Gradients
from reference import Family

RNG = np.random.default_rng(23)

# Ours: NumPy's, for the transform and for its inverse.
NORMS = {"backward": ("backward", "forward"), "forward": ("backward", "backward"),
         "ortho": ("ortho", "ortho")}
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 30, 64, 97, 100, 101, 120, 128, 210, 211, 243, 256)


def real(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def complex_(*shape, dtype=np.complex128):
    return (real(*shape) + 1j * real(*shape)).astype(dtype)


def blocks(z, axis=-1):
    return np.concatenate([z.real, z.imag], axis)


def transforms(f):
    for n in LENGTHS:
        z, x = complex_(2, n), real(2, n)
        bins = scipy.fft.rfft(x)
        f.case(f"fft_{n}", "%y = fft %z", {"z": z}, scipy.fft.fft(z))
        f.case(f"fft_inverse_{n}", "%y = fft %z {inverse = true, norm = forward}", {"z": z},
               scipy.fft.ifft(z))
        f.case(f"fft_blocks_{n}", "%y = fft %z", {"z": blocks(z)}, blocks(scipy.fft.fft(z)))
        f.case(f"rfft_{n}", "%y = rfft %x", {"x": x}, bins)
        f.case(f"irfft_{n}", f"%y = irfft %z {{n = {n}, norm = forward}}", {"z": bins},
               scipy.fft.irfft(bins, n))
    z, x = complex_(3, 12, 2), real(3, 10, 2)
    for norm, (there, back) in NORMS.items():
        f.case(f"fft_{norm}", f"%y = fft %z {{axis = 1, norm = {norm}}}", {"z": z},
               np.fft.fft(z, axis=1, norm=there))
        f.case(f"ifft_{norm}", f"%y = fft %z {{axis = 1, inverse = true, norm = {norm}}}", {"z": z},
               np.fft.ifft(z, axis=1, norm=back))
        f.case(f"rfft_{norm}", f"%y = rfft %x {{axis = 1, norm = {norm}}}", {"x": x},
               np.fft.rfft(x, axis=1, norm=there))
        f.case(f"irfft_{norm}", f"%y = irfft %z {{n = 23, axis = 1, norm = {norm}}}", {"z": z},
               np.fft.irfft(z, 23, axis=1, norm=back))
    for n in (7, 16):
        f.case(f"rfft_to_{n}", f"%y = rfft %x {{n = {n}, axis = 1}}", {"x": x},
               np.fft.rfft(x, n, axis=1))
    z = complex_(4, 6, 5)
    f.case("fft3", "%a = fft %z {axis = 2}\n%b = fft %a {axis = 1}\n%y = fft %b {axis = 0}",
           {"z": z}, np.fft.fftn(z))
    z = complex_(3, 40, dtype=np.complex64)
    f.case("fft_c64", "%y = fft %z", {"z": z}, scipy.fft.fft(z))
    x = real(3, 40, dtype=np.float32)
    f.case("rfft_f32", "%y = rfft %x", {"x": x}, scipy.fft.rfft(x))


def frames(f):
    x, w = real(2, 50), scipy.signal.get_window("hann", 16)
    cut = np.lib.stride_tricks.sliding_window_view(x, 16, axis=-1)[:, ::6]
    f.case("frame", "%y = frame %x {frame_len = 16, hop = 6}", {"x": x}, cut)
    f.case("stft", "%f = frame %x {frame_len = 16, hop = 6}\n%p = mul %f, %w\n%y = rfft %p",
           {"x": x, "w": w}, np.fft.rfft(cut * w))
    added = np.zeros((2, 6 * 5 + 16))
    for i in range(6):
        added[:, 6 * i:6 * i + 16] += cut[:, i]
    f.case("overlap_add", "%y = overlap_add %x {hop = 6}", {"x": cut}, added)


def log_mel_value(spectrum, filters, floor=8.0, utterance=False, np=np):
    n_fft = spectrum.shape[-1] // 2
    n_bins = filters.shape[1]
    power = spectrum[..., :n_bins] ** 2 + spectrum[..., n_fft:n_fft + n_bins] ** 2
    level = np.log10(np.maximum(power @ filters.T, 1e-10))
    largest = level.max(axis=(-2, -1) if utterance else -1, keepdims=True)
    return (np.maximum(level, largest - floor) + 4) / 4


def mel_inputs():
    return {"s": real(2, 5, 32), "f": np.abs(real(6, 9))}


def spectrum():
    f = Family("spectrum")
    transforms(f)
    frames(f)
    i = mel_inputs()
    f.case("log_mel", "%y = log_mel %s, %f", i, log_mel_value(i["s"], i["f"]))
    f.case("log_mel_floor", "%y = log_mel %s, %f {floor = 0.3}", i,
           log_mel_value(i["s"], i["f"], 0.3))
    f.case("log_mel_utterance", "%y = log_mel %s, %f {floor = 0.5, scope = utterance}", i,
           log_mel_value(i["s"], i["f"], 0.5, utterance=True))
    return f


def spectrum_gradients():
    f = Gradients("spectrum")
    z, x = complex_(2, 6), real(2, 9)
    f.program("fft", "%e = exp %z\n%y = fft %e", lambda z: jnp.fft.fft(jnp.exp(z)), {"z": z})
    f.program("ifft", "%e = exp %z\n%y = fft %e {axis = 0, inverse = true, norm = forward}",
              lambda z: jnp.fft.ifft(jnp.exp(z), axis=0), {"z": z})
    f.program("rfft", "%h = tanh %x\n%y = rfft %h", lambda x: jnp.fft.rfft(jnp.tanh(x)), {"x": x})
    f.program("rfft_even", "%h = tanh %x\n%y = rfft %h {n = 8, norm = ortho}",
              lambda x: jnp.fft.rfft(jnp.tanh(x), 8, norm="ortho"), {"x": x})
    f.program("irfft", "%e = exp %z\n%y = irfft %e {n = 10, norm = forward}",
              lambda z: jnp.fft.irfft(jnp.exp(z), 10), {"z": z})
    f.program("irfft_odd", "%e = exp %z\n%y = irfft %e {n = 11}",
              lambda z: jnp.fft.irfft(jnp.exp(z), 11, norm="forward"), {"z": z})
    f.program("frame", "%h = tanh %x\n%y = frame %h {frame_len = 4, hop = 2}",
              lambda x: jnp.stack([jnp.tanh(x)[:, i:i + 4] for i in (0, 2, 4)], 1), {"x": x})
    f.program("power", """%h = tanh %x
      %z = rfft %h
      %c = conjugate %z
      %p = mul %z, %c
      %y = cast %p {to = f64}""", lambda x: jnp.abs(jnp.fft.rfft(jnp.tanh(x))) ** 2, {"x": x})
    i = {"s": real(4, 16), "f": np.abs(real(3, 5))}
    for name, floor in {"log_mel": 8.0, "log_mel_floor": 0.25}.items():
        f.program(name, f"%y = log_mel %s, %f {{floor = {floor}}}",
                  lambda s, w, floor=floor: log_mel_value(s, w, floor, np=jnp), i)
    f.program("log_mel_utterance", "%y = log_mel %s, %f {floor = 0.4, scope = utterance}",
              lambda s, w: log_mel_value(s, w, 0.4, utterance=True, np=jnp), i)
    return f


class values:
    families = staticmethod(lambda: [spectrum()])


class derivatives:
    families = staticmethod(lambda: [spectrum_gradients()])
