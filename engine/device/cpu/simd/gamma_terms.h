// Computes what incomplete gamma functions are made of: ScalarOp::gamma_weight, gamma_series, gamma_fraction.
#pragma once

namespace caldera::cpu {

/// Returns (x / a)^a exp(a - x), NaN unless both are above 0. Near a as exact as exp; elsewhere a relative
/// error of about 1e-16 times the exponent.
double gamma_weight(double a, double x);

/// Sums 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)) for 0 < x <= max(a, 1), from the last term that counts in
/// float64 or float32; NaN elsewhere.
double gamma_series(double a, double x, bool wide);

/// Evaluates Legendre's continued fraction 1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a -
/// ...))) for x >= max(a, 1) and a > 0, likewise.
double gamma_fraction(double a, double x, bool wide);

}  // namespace caldera::cpu
