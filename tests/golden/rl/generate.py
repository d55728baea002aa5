#!/usr/bin/env python3
"""Prints trajectories of the classic environments in plain Python: python3 tests/golden/rl/generate.py

The formulas are those of Gymnasium 1.0 (gymnasium/envs/classic_control), in Python's own floats, which are what NumPy's
scalars are but for sine and cosine. tests/training/rl/environments_test.cpp has what it prints.
"""

import math


def cart_pole(s, action):
    x, v, t, w = s
    force = 10.0 if action == 1 else -10.0
    c, n = math.cos(t), math.sin(t)
    temp = (force + 0.1 * 0.5 * w**2 * n) / (0.1 + 1.0)
    turning = (9.8 * n - c * temp) / (0.5 * (4.0 / 3.0 - 0.1 * c**2 / (0.1 + 1.0)))
    speeding = temp - 0.1 * 0.5 * turning * c / (0.1 + 1.0)
    return x + 0.02 * v, v + 0.02 * speeding, t + 0.02 * w, w + 0.02 * turning


def pendulum(s, u):
    t, w = s
    w = w + (3 * 10.0 / (2 * 1.0) * math.sin(t) + 3.0 / (1.0 * 1.0**2) * u) * 0.05
    w = min(max(w, -8.0), 8.0)
    return t + w * 0.05, w


def mountain(s, push):
    x, v = s
    v = min(max(v + (push + math.cos(3 * x) * -0.0025), -0.07), 0.07)
    x = min(max(x + v, -1.2), 0.6)
    return x, 0.0 if x == -1.2 and v < 0 else v


def acrobot(s, action):
    def slope(y):
        t1, t2, w1, w2, a = y
        d1 = 1.0 * 0.5**2 + 1.0 * (1.0**2 + 0.5**2 + 2 * 1.0 * 0.5 * math.cos(t2)) + 1.0 + 1.0
        d2 = 1.0 * (0.5**2 + 1.0 * 0.5 * math.cos(t2)) + 1.0
        phi2 = 1.0 * 0.5 * 9.8 * math.cos(t1 + t2 - math.pi / 2.0)
        phi1 = (-1.0 * 1.0 * 0.5 * w2**2 * math.sin(t2) - 2 * 1.0 * 1.0 * 0.5 * w2 * w1 * math.sin(t2)
                + (1.0 * 0.5 + 1.0 * 1.0) * 9.8 * math.cos(t1 - math.pi / 2) + phi2)
        a2 = (a + d2 / d1 * phi1 - 1.0 * 1.0 * 0.5 * w1**2 * math.sin(t2) - phi2) / (1.0 * 0.5**2 + 1.0 - d2**2 / d1)
        return [w1, w2, -(d2 * a2 + phi1) / d1, a2, 0.0]

    y, dt = [*s, float(action - 1)], 0.2
    k1 = slope(y)
    k2 = slope([p + dt / 2.0 * k for p, k in zip(y, k1)])
    k3 = slope([p + dt / 2.0 * k for p, k in zip(y, k2)])
    k4 = slope([p + dt * k for p, k in zip(y, k3)])
    y = [p + dt / 6.0 * (a + 2 * b + 2 * c + d) for p, a, b, c, d in zip(y, k1, k2, k3, k4)]
    for i, most in ((2, 4 * math.pi), (3, 9 * math.pi)):
        y[i] = min(max(y[i], -most), most)
    for i in (0, 1):
        while y[i] > math.pi:
            y[i] -= 2 * math.pi
        while y[i] < -math.pi:
            y[i] += 2 * math.pi
    return tuple(y[:4])


def run(name, step, state, actions):
    for action in actions:
        state = step(state, action)
    print(name, len(actions), ", ".join(repr(x) for x in state))


run("CartPole", cart_pole, (0.01, -0.02, 0.03, -0.04), [0])
run("CartPole", cart_pole, (0.01, -0.02, 0.03, -0.04), [i % 2 for i in range(20)])
run("CartPole", cart_pole, (0.0, 0.0, 0.0, 0.0), [1] * 9)
run("Pendulum", pendulum, (math.pi, 1.0), [0.5])
run("Pendulum", pendulum, (math.pi, 1.0), [0.5] * 200)
run("MountainCar", mountain, (-0.5, 0.0), [(i // 20 % 3 - 1) * 0.001 for i in range(100)])
run("Acrobot", acrobot, (0.05, -0.03, 0.02, 0.01), [i // 7 % 3 for i in range(10)])
run("Acrobot", acrobot, (0.05, -0.03, 0.02, 0.01), [i // 7 % 3 for i in range(100)])
