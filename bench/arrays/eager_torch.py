"""The expression of array_bench.cpp in PyTorch, eager: microseconds a call."""

import sys
import timeit

import torch


def expression(x, y, w, b):
    h = torch.tanh(x @ w + b)
    h = h * torch.sigmoid(h) + y * 0.5
    h = torch.exp(-torch.abs(h)) + torch.sqrt(h * h + 1.0)
    m = h - h.mean()
    return (m * m).sum() / 3.0 + h.max() - m.min()


def main():
    torch.set_grad_enabled(False)
    if len(sys.argv) > 1:
        torch.set_num_threads(int(sys.argv[1]))
    for n in (4, 16, 64):
        x, y, w = (torch.randn(n, n) for _ in range(3))
        b = torch.randn(n)
        expression(x, y, w, b).item()
        times = timeit.repeat(lambda: expression(x, y, w, b).item(), number=500, repeat=7)
        print(f"eager/{n}  {min(times) / 500 * 1e6:.1f} us")


if __name__ == "__main__":
    main()
