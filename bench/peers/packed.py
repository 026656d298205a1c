"""Weights in few bits as arrays of floats, for peers that have no products with them."""

import numpy as np

Q4_K_BLOCK, Q4_K_BYTES = 256, 144


def decode_q4_k(packed):
    """Blocks of 256: two f16 (scale, least), 12 bytes of eight 6-bit pairs, 128 bytes of codes."""
    blocks = packed.reshape(-1, Q4_K_BYTES)
    halves = blocks[:, :4].copy().view(np.float16).astype(np.float32)
    six = blocks[:, 4:16].astype(np.int32)
    low, high, rest = six[:, :4], six[:, 4:8], six[:, 8:]
    scales = np.concatenate([low & 63, (rest & 15) | (low >> 6 << 4)], axis=1)
    least = np.concatenate([high & 63, (rest >> 4) | (high >> 6 << 4)], axis=1)
    codes = blocks[:, 16:].reshape(-1, 4, 1, 32)
    codes = np.concatenate([codes & 15, codes >> 4], axis=2).reshape(-1, 8, 32)
    scaled = (halves[:, :1] * scales)[:, :, None] * codes.astype(np.float32)
    return (scaled - (halves[:, 1:] * least)[:, :, None]).reshape(-1)


def decoded(workload, feeds):
    """The weight of a workload as [k, n], or [experts, k, n]."""
    w = feeds["w"]
    if workload.startswith("q4_k"):
        k = feeds["x"].shape[1]
        return np.ascontiguousarray(np.swapaxes(decode_q4_k(w).reshape(-1, k, k), 1, 2))
    if workload.startswith("int8"):
        return w.astype(np.float32) * np.repeat(feeds["s"], 32, axis=0)
    return w
