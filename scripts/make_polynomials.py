#!/usr/bin/env python3
"""Write src/backend/cpu/math/vector_math_polynomials.h: the polynomials of the CPU's vector functions.

Each is the minimax approximation, by Remez' exchange, of what is left of a function once its
leading terms are taken out, worked out with 50 digits (needs mpmath). The degree is the lowest
whose error, relative to the whole function, is below 2^-bits.
"""
import sys
from mpmath import (mp, mpf, cos, pi, exp, log, sin, atan, asin, sinh, erf, erfc, sqrt, matrix,
                    lu_solve, fabs)

mp.dps = 50
LN2 = log(2)


def value(coefficients, x):
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def exchange(xs, gs, ws, degree):
    """Remez' exchange on a grid: the coefficients and the largest weighted error."""
    n = len(xs)
    picks = [round((n - 1) * (1 - float(cos(pi * k / (degree + 1)))) / 2)
             for k in range(degree + 2)]
    for _ in range(12):
        rows = matrix(degree + 2, degree + 2)
        for i, k in enumerate(picks):
            for j in range(degree + 1):
                rows[i, j] = xs[k] ** j
            rows[i, degree + 1] = (-1) ** i / ws[k]
        solution = lu_solve(rows, matrix([gs[k] for k in picks]))
        coefficients = list(solution)[:-1]
        errors = [(value(coefficients, x) - g) * w for x, g, w in zip(xs, gs, ws)]
        peaks = []  # the largest error of each run of one sign
        for k, e in enumerate(errors):
            if peaks and (errors[peaks[-1]] > 0) == (e > 0):
                if fabs(e) > fabs(errors[peaks[-1]]):
                    peaks[-1] = k
            else:
                peaks.append(k)
        while len(peaks) > degree + 2:
            peaks.pop(0 if fabs(errors[peaks[0]]) < fabs(errors[peaks[-1]]) else -1)
        if len(peaks) < degree + 2 or peaks == picks:
            break
        picks = peaks
    return coefficients, max(fabs(e) for e in errors)


def best(g, lo, hi, weight, bits):
    """The shortest polynomial with |polynomial - g| * weight <= 2^-bits on [lo, hi]."""
    count = 800
    xs = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (k + mpf("0.5")) / count)
          for k in range(count)]
    gs = [g(x) for x in xs]
    ws = [weight(x) for x in xs]
    for degree in range(2, 40):
        coefficients, error = exchange(xs, gs, ws, degree)
        if error <= mpf(2) ** -bits:
            return coefficients
    raise SystemExit("no fit")


def in_square(f):
    return lambda z: f(sqrt(z))


A = mpf(2)  # erfc's map (x - A)/(x + A) of [0, inf) to [-1, 1)


def erfc_scaled(y):
    x = A * (1 + y) / (1 - y)
    # exp(x^2) erfc(x) underflows in neither factor at 50 digits and x < 1e4
    return (1 + 2 * x) * exp(x * x) * erfc(x) if x < 1000 else (1 + 2 * x) / (x * sqrt(pi)) * (
        1 - 1 / (2 * x * x) + 3 / (4 * x ** 4))


def normal_tail(y):
    t = (1 - y) / 2
    x = (1 / t - 1) / mpf("0.3")
    return exp(x * x / 2) * erfc(x / sqrt(2)) / 2 / t


h = LN2 / 2 * mpf("1.0001")
q = pi / 4 * mpf("1.0001")
t8 = (sqrt(2) - 1) * mpf("1.0001")
s_log = (sqrt(2) - 1) / (sqrt(2) + 1) * mpf("1.001")

# name, comment, function, interval, weight (error of the polynomial -> relative error), bits
TABLE = [
    ("Exp", "(eʳ − 1 − r)/r²", lambda r: (exp(r) - 1 - r) / r ** 2, -h, h,
     lambda r: r ** 2 / exp(r), (27.5, 57)),
    ("Expm1", "(eʳ − 1 − r)/r², to the precision of eʳ − 1", lambda r: (exp(r) - 1 - r) / r ** 2,
     -h, h, lambda r: fabs(r ** 2 / (exp(r) - 1)), (27, 57)),
    ("Exp2", "(2ᶠ − 1)/f", lambda f: (exp(f * LN2) - 1) / f, mpf("-0.5001"), mpf("0.5001"),
     lambda f: fabs(f) / exp(f * LN2), (28, 58)),
    ("LogDirect", "(log(1+f) − f + f²/2)/f³", lambda f: (log(1 + f) - f + f * f / 2) / f ** 3,
     sqrt(mpf("0.5")) - 1 - mpf("1e-4"), sqrt(mpf(2)) - 1 + mpf("1e-4"),
     lambda f: fabs(f ** 3 / log(1 + f)), (27, 34)),
    ("LogRatio", "(log((1+s)/(1−s)) − 2s)/s³ in s²",
     in_square(lambda s: (log((1 + s) / (1 - s)) - 2 * s) / s ** 3), mpf("1e-12"), s_log ** 2,
     lambda z: z / 2, (38, 60)),
    ("LogTail", "(atanh s − s − s³/3)/s⁵ in s²",
     in_square(lambda s: (log((1 + s) / (1 - s)) / 2 - s - s ** 3 / 3) / s ** 5), mpf("1e-9"),
     s_log ** 2, lambda z: z * z, (40, 68)),
    ("Sin", "(sin r − r)/r³ in r²", in_square(lambda r: (sin(r) - r) / r ** 3), mpf("1e-12"),
     q * q, lambda z: z, (28, 58)),
    ("Cos", "(cos r − 1 + r²/2)/r⁴ in r²", in_square(lambda r: (cos(r) - 1 + r * r / 2) / r ** 4),
     mpf("1e-9"), q * q, lambda z: z * z, (28, 58)),
    ("Atan", "(atan t − t)/t³ in t²", in_square(lambda t: (atan(t) - t) / t ** 3), mpf("1e-12"),
     t8 * t8, lambda z: z, (28, 58)),
    ("Asin", "(asin x − x)/x³ in x²", in_square(lambda x: (asin(x) - x) / x ** 3), mpf("1e-12"),
     mpf("0.25"), lambda z: z, (28, 57)),
    ("Sinh", "(sinh x − x)/x³ in x²", in_square(lambda x: (sinh(x) - x) / x ** 3), mpf("1e-12"),
     mpf(1), lambda z: z, (28, 57)),
    ("Erf", "erf(x)/x − 1 in x²", in_square(lambda x: erf(x) / x - 1), mpf("1e-18"), mpf(1),
     lambda z: 1, (27, 57)),
    # 5/4 is taken out so that the constant term's own rounding does not count.
    ("Erfc", "(1+2x)·exp(x²)·erfc(x) − 5/4 in (x−2)/(x+2)", lambda y: erfc_scaled(y) - 1.25,
     mpf(-1), mpf("0.9999"), lambda y: 1, (29, 56)),
    ("NormalTail", "Φ(−x)·e^(x²/2)·(1 + h) in (h − 1)/(h + 1), h = 0.3·x, x up to 14.5",
     normal_tail, mpf(-1), 1 - 2 / (1 + mpf("14.5") * mpf("0.3")),
     lambda y: 1 / normal_tail(y), (26.5, None)),
    ("ErfcLog2", "−log2 erfc(x), for 1 − 2^−p to single precision", lambda x: -log(erfc(x)) / LN2,
     mpf("0.9"), mpf(4), lambda x: erfc(x) * LN2, (26.5, None)),
]

HEADER = """// Made by scripts/make_polynomials.py; do not edit.
// Coefficients from the constant term up: `single` serves results in single precision (whatever
// the type they are worked out in), `full` those in double.
#pragma once

#include <array>
#include <span>

namespace ricci::cpu::polynomial {

struct Polynomial {
  std::span<const double> single;
  std::span<const double> full;
};
"""


def main():
    out = [HEADER]
    for name, comment, g, lo, hi, weight, bits in TABLE:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        parts = []
        for kind, b in zip(("Single", "Full"), bits):
            if b is None:
                parts.append(parts[0])
                continue
            coefficients = best(g, lo, hi, weight, b)
            print(name, kind, len(coefficients), file=sys.stderr)
            numbers = ", ".join(repr(float(c)) for c in coefficients)
            out.append(f"inline constexpr std::array {name}{kind}{{{numbers}}};\n")
            parts.append(name + kind)
        out.append(f"/// {comment}\ninline constexpr Polynomial {name}{{{parts[0]}, {parts[1]}}};\n")
    out.append("}  // namespace ricci::cpu::polynomial")
    print("\n".join(out))


main()
