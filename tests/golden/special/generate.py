#!/usr/bin/env python3
"""Makes values.txt: special functions at 40 digits, rounded to 20. Needs mpmath.

    python3 tests/golden/special/generate.py > tests/golden/special/values.txt

A line is a function, its arguments, which float32 holds, and its value. Arguments are drawn from what a function is
used for, evenly and by binades, and from where its formulas change.
"""

import random

import mpmath as mp

mp.mp.dps = 40


def spread(low, high, count, seed):
    """Numbers between two, evenly, in steps that float32 has."""
    draw = random.Random(seed)
    return [round(draw.uniform(low, high) * 2**12) / 2**12 for _ in range(count)]


def binades(first, last, signs=(1,)):
    """A number in each binade."""
    draw = random.Random(first * 1000 + last)
    return [s * round(draw.uniform(1, 2) * 2**10) * 2.0 ** (e - 10) for e in range(first, last + 1) for s in signs]


def bessel(order, scaled):
    def value(x):
        y = mp.besseli(order, x)
        return y * mp.exp(-abs(x)) if scaled else y
    return value


def ndtr(x):
    return mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def ndtri(p):
    start = mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1) if p > 1e-30 else -mp.sqrt(-2 * mp.log(p))
    return mp.findroot(lambda y: mp.log(ndtr(y)) - mp.log(mp.mpf(p)), start)


def zeta(s, q):
    """By Euler and Maclaurin's sum: mpmath's own has few right digits of large arguments."""
    s, end = mp.mpf(s), mp.mpf(q) + 60
    total = sum((mp.mpf(q) + k) ** -s for k in range(60)) + end ** (1 - s) / (s - 1) + end**-s / 2
    factor = s * end ** (-s - 1)
    for j in range(1, 16):
        total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * factor
        factor *= (s + 2 * j - 1) * (s + 2 * j) / end**2
    return total


def multigammaln(p):
    return lambda a: sum(mp.loggamma(mp.mpf(a) - mp.mpf(i) / 2) for i in range(p)) + mp.mpf(p * (p - 1)) / 4 * mp.log(mp.pi)


def polygamma(n):
    def value(x):
        return mp.polygamma(n, mp.mpf(x))
    return value


def igamma(a, x):
    return mp.gammainc(mp.mpf(a), 0, mp.mpf(x), regularized=True)


def igammac(a, x):
    return mp.gammainc(mp.mpf(a), mp.mpf(x), mp.inf, regularized=True)


def shapes(seed):
    """Where its formulas change: small ones, x next to a, a next to 10 and 64."""
    return (list(zip(spread(0.01, 12, 40, seed), spread(0.01, 20, 40, seed + 1)))
            + list(zip(binades(-12, 3), spread(0.01, 1, 16, seed + 2)))
            + [(a, round(a * r * 2**10) / 2**10) for a in spread(8, 70, 8, seed + 3) for r in (0.25, 0.75, 1, 1.25, 2)]
            + [(a, round((a + d * a**0.5) * 2**6) / 2**6) for a in (64, 100, 1000.5, 10000) for d in (-5, -1, 0, 1, 5)])


ONE = {
    "i0": (bessel(0, False), spread(-10, 10, 30, 1) + spread(20, 88, 10, 2) + binades(-20, 6, (1, -1)) + [3.75, 4, 8]),
    "i1": (bessel(1, False), spread(-10, 10, 30, 3) + spread(20, 88, 10, 4) + binades(-20, 6, (1, -1)) + [4, 8]),
    "i0e": (bessel(0, True), spread(-10, 10, 30, 5) + binades(-20, 40, (1, -1)) + [4, 8]),
    "i1e": (bessel(1, True), spread(-10, 10, 30, 6) + binades(-20, 40, (1, -1)) + [4, 8]),
    "erfcx": (lambda x: mp.exp(mp.mpf(x) ** 2) * mp.erfc(x), spread(-9, 12, 60, 7) + binades(-20, 40) + [-9.25, 0, -0.5]),
    "ndtr": (ndtr, spread(-12.5, 8, 60, 8) + binades(-20, 2, (1, -1)) + [0, -1, 1]),
    "log_ndtr": (lambda x: mp.log(ndtr(x)) if x < 0 else mp.log1p(-ndtr(-mp.mpf(x))),
                 spread(-20, 12, 60, 9) + binades(-20, 3, (1, -1)) + [-100, -1000, 0, -1]),
    "ndtri": (ndtri, [p / 64 for p in range(1, 64) if p != 32] + binades(-120, -7) + [1 - 2.0**-k for k in range(2, 24)]),
    "entr": (lambda x: -mp.mpf(x) * mp.log(x), spread(0.01, 0.9, 15, 10) + spread(1.1, 100, 15, 11) + binades(-60, 60)),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), spread(2.5, 40, 40, 12) + binades(-60, -1) + binades(6, 60)
               + spread(0.5, 0.9, 10, 13) + spread(1.1, 1.9, 10, 14) + spread(2.1, 2.5, 10, 15)),
    "multigammaln_3": (multigammaln(3), spread(3, 30, 30, 16)),
    **{f"polygamma_{n}": (polygamma(n), spread(0.1, 20, 30, 17 + n) + binades(-5, 12)
                          + [k + 0.25 + 1 / 16 for k in range(-6, 0)]) for n in (1, 2, 3)},
}

TWO = {
    "zeta": (zeta, [(s, q) for s in spread(1.1, 12, 8, 30) for q in spread(0.1, 10, 6, 31)]
             + [(s, q) for s in (1.0009765625, 2, 30) for q in (0.5, 1, 100)]),
    "igamma": (igamma, shapes(40)),
    "igammac": (igammac, shapes(50)),
    "xlog1py": (lambda x, y: mp.mpf(x) * mp.log1p(y), list(zip(spread(-10, 10, 30, 32), spread(-0.9, 20, 30, 33)))
                + [(2.5, y) for y in binades(-30, -1, (1, -1))]),
    "pow": (lambda x, y: mp.mpf(x) ** mp.mpf(y), list(zip(spread(0.01, 10, 60, 34), spread(-20, 20, 60, 35)))
            + [(x, y) for x in (1.0009765625, 0.9990234375) for y in (1000.5, -5000.25, 20000.125)]
            + [(x, 1.5) for x in binades(-60, 60)]),
}


def main():
    for name, (function, points) in ONE.items():
        for x in points:
            print(name, repr(float(x)), mp.nstr(function(x), 20))
    for name, (function, points) in TWO.items():
        for x, y in points:
            print(name, repr(float(x)), repr(float(y)), mp.nstr(function(x, y), 20))


if __name__ == "__main__":
    main()
