// Functions that choose between values or change their signs: copysign, clip, fmax and the like.
#include <limits>
#include <string>

#include "ops/elementwise/function_entries.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::real_function;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void copysign_vjp(VjpContext& c) {
  if (c.needed[0])
    c.grads[0] = c.cotangent * sign(c.inputs[0]) * copysign(ones_like(c.cotangent), c.inputs[1]);
  if (c.needed[1]) c.grads[1] = zeros_like(c.cotangent);
}

const OpDef kCopysign{
    .name = "copysign", .kind = OpClass::elementwise, .scalar = ScalarOp::copysign, .vjp = copysign_vjp};

/// `low` where x lies below it: of a bound that is NaN nothing is left.
LazyTensor not_below(const LazyTensor& x, const LazyTensor& low) {
  return is_floating(x.dtype()) ? where(x >= low, x, where(isnan(x), x, low)) : where(x >= low, x, low);
}
LazyTensor not_above(const LazyTensor& x, const LazyTensor& high) {
  return is_floating(x.dtype()) ? where(x <= high, x, where(isnan(x), x, high)) : where(x <= high, x, high);
}

/// An integer beyond an integer type as the nearest that it holds.
LazyTensor saturated(const LazyTensor& bound, DType type) {
  if (ops::holds(type, bound) || is_floating(bound.dtype())) return bound;
  return bound.node().attributes()[0] < 0 ? facts(type).lowest : facts(type).highest;
}

/// Of a number and NaN the number.
template <LazyTensor (*Choose)(const LazyTensor&, const LazyTensor&)>
LazyTensor number_of(const LazyTensor& a, const LazyTensor& b) {
  const LazyTensor chosen = Choose(a, b);
  return is_floating(chosen.dtype()) ? where(isnan(a), b, where(isnan(b), a, chosen)) : chosen;
}

double largest(DType type) {
  switch (type) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

LazyTensor copysign(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kCopysign, a, b); }

LazyTensor signbit(const LazyTensor& x) {
  ops::check_domain("signbit", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? copysign(ones_like(x), x) < 0 : x < 0;
}
LazyTensor isfinite(const LazyTensor& x) {
  ops::check_domain("isfinite", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? abs(x) < kInfinity : x == x;
}
LazyTensor isinf(const LazyTensor& x) {
  ops::check_domain("isinf", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? abs(x) == kInfinity : x != x;
}
LazyTensor positive(const LazyTensor& x) {
  ops::check_domain("positive", ScalarDomain::numeric, x.dtype());
  return x;
}

LazyTensor clip(const LazyTensor& x, const std::optional<LazyTensor>& low,
                const std::optional<LazyTensor>& high) {
  LazyTensor y = x;
  for (const auto* bound : {&low, &high}) {
    // A number between tensors is one of their type, and lies where they do.
    if (!*bound || (*bound)->node().is_scalar_leaf()) continue;
    y = ops::anchored(ops::as_held_operand("clip", y, ops::dtype_beside(y, **bound)), (*bound)->device());
  }
  ops::check_domain("clip", ScalarDomain::numeric, y.dtype());
  if (low) {
    broadcast_shapes(y.shape(), low->shape(), "clip");
    y = not_below(y, saturated(*low, y.dtype()));
  }
  if (high) {
    broadcast_shapes(y.shape(), high->shape(), "clip");
    y = not_above(y, saturated(*high, y.dtype()));
  }
  return y;
}

LazyTensor fmax(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmax", a, b, number_of<maximum>);
}
LazyTensor fmin(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmin", a, b, number_of<minimum>);
}

LazyTensor fmod(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmod", a, b, [](const LazyTensor& x, const LazyTensor& y) {
    if (!is_floating(x.dtype())) {  // the least integer has no magnitude
      const LazyTensor rest = remainder(x, y);
      return where(logical_and(rest != 0, logical_xor(rest < 0, x < 0)), rest - y, rest);
    }
    // The remainder of magnitudes is exact, and the sign is that of a.
    const LazyTensor rest = remainder(abs(x), abs(y));
    const LazyTensor of_zero = where(rest == 0, x, rest);
    return where(x > 0, rest, where(x < 0, -rest, of_zero));
  });
}

LazyTensor frac(const LazyTensor& x) {
  ops::check_domain("frac", ScalarDomain::floating, x.dtype());
  return x - trunc(x);
}

LazyTensor heaviside(const LazyTensor& x, const LazyTensor& values) {
  return ops::numeric_function("heaviside", x, values, [](const LazyTensor& y, const LazyTensor& at_zero) {
    return where(y > 0, 1, where(y < 0, 0, where(y == 0, at_zero, stop_gradient(y))));
  });
}

LazyTensor nan_to_num(const LazyTensor& x, double nan, std::optional<double> positive_infinity,
                      std::optional<double> negative_infinity) {
  ops::check_domain("nan_to_num", ScalarDomain::numeric, x.dtype());
  if (!is_floating(x.dtype())) return x;
  const double high = positive_infinity.value_or(largest(x.dtype()));
  const double low = negative_infinity.value_or(-largest(x.dtype()));
  return where(isnan(x), nan, where(x == kInfinity, high, where(x == -kInfinity, low, x)));
}

LazyTensor lerp(const LazyTensor& start, const LazyTensor& end, const LazyTensor& weight) {
  const LazyTensor from = real_function("lerp", start, end, [](const auto& a, const auto&) { return a; });
  return real_function("lerp", from, weight, [&](const LazyTensor& a, const LazyTensor& w) {
    const LazyTensor b = ops::as_operand(end, a.dtype());
    const LazyTensor step = b - a;
    return where(abs(w) < 0.5, a + w * step, b - step * (1 - w));
  });
}

namespace ops {
namespace {

/// Clear of round numbers.
constexpr Range kBetween{.offset = 1.0 / 128};
constexpr Range kNotZero{.away_from_zero = 0.25};

// ---- clip

/// Operands: x, then the bounds that the argument `bounds` names, as tensors; or numbers as arguments.
Results call_clip(Tensors x, const Arguments& a) {
  const std::string bounds = a.text("bounds", "");
  const auto bound = [&](std::string_view name, std::size_t operand) -> std::optional<LazyTensor> {
    if (bounds == name || bounds == "both") return x[bounds == "both" ? operand : 1];
    if (a.has(name)) return LazyTensor(a.integer(name, 0));
    return std::nullopt;
  };
  return {caldera::clip(x[0], bound("low", 1), bound("high", 2))};
}

std::vector<Sample> clip_samples(const Operation&) {
  constexpr Range low{.low = -1, .high = 0}, high{.low = 0.25, .high = 1};
  std::vector<Sample> out{{{{{7}, kBetween}}}};
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{33}, Shape{2, 3}, Shape{0, 3}}) {
    const Operand x{shape, kBetween};
    out.push_back({{x}, {{"low", std::int64_t{1}}}});
    out.push_back({{x}, {{"high", std::int64_t{1}}}});
    out.push_back({{x}, {{"low", std::int64_t{0}}, {"high", std::int64_t{1}}}});
    out.push_back({{x, {{shape}, low}}, {{"bounds", std::string("low")}}});
    out.push_back({{x, {{shape}, high}}, {{"bounds", std::string("high")}}});
    out.push_back({{x, {{shape}, low}, {{}, high}}, {{"bounds", std::string("both")}}});
  }
  out.push_back({{{{2, 3, 4}, kBetween}, {{4}, low}, {{3, 1}, high}}, {{"bounds", std::string("both")}}});
  return out;
}

std::vector<ErrorSample> clip_errors(const Operation&) {
  return {{.refusal = Refusal::shape,
           .operands = {{{2, 3}}, {{2}}},
           .arguments = {{"bounds", std::string("low")}},
           .mentions = "(2, 3)"},
          {.refusal = Refusal::shape,
           .operands = {{{4}}, {{3}}},
           .arguments = {{"bounds", std::string("high")}},
           .mentions = "(3,)"}};
}

// ---- lerp

std::vector<Sample> lerp_samples(const Operation&) {
  constexpr Range weight{.low = -0.5, .high = 1.5, .offset = 1.0 / 128};
  struct Shapes {
    Shape start, end, weight;
  };
  static const Shapes kShapes[] = {
      {{}, {}, {}},          {{7}, {7}, {7}},  {{2, 3}, {2, 3}, {}},    {{3}, {2, 1}, {1}},
      {{0, 3}, {3}, {0, 3}}, {{}, {33}, {33}}, {{2, 3, 4}, {4}, {3, 1}}};
  std::vector<Sample> out;
  for (const Shapes& s : kShapes) out.push_back({{{s.start}, {s.end}, {s.weight, weight}}});
  return out;
}

std::vector<ErrorSample> lerp_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2}}, {{}}}, .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{4}}, {{4}}, {{3}}}, .mentions = "(3,)"}};
}

// ---- nan_to_num

Results call_nan_to_num(Tensors x, const Arguments& a) {
  const auto given = [&](const char* name) {
    return a.has(name) ? std::optional<double>(a.real(name, 0)) : std::nullopt;
  };
  return {
      caldera::nan_to_num(x[0], a.real("nan", 0), given("positive_infinity"), given("negative_infinity"))};
}

std::vector<Sample> nan_to_num_samples(const Operation& operation) {
  // What these replace is in tests/ops: samples are finite, since integers hold them, too.
  return unary_samples(operation,
                       {{{"nan", 3.0}}, {{"positive_infinity", 100.0}, {"negative_infinity", -50.0}}});
}

}  // namespace

std::span<const Operation> limit_functions() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      of_two("copysign", "copysign(a, b)",
             "The magnitude of a with the sign of b, zeros and NaN included. The slope at a = 0 is 0.",
             kNotZero, kNotZero, call_binary<caldera::copysign>, kAnyType, R::floating),
      of_one("signbit", "signbit(x)", "Whether the sign is negative, that of -0 and of NaN included.", {},
             call_unary<caldera::signbit>, kNumeric, R::boolean, G::none),
      of_one("isfinite", "isfinite(x)", "Whether x is neither infinite nor NaN.", {},
             call_unary<caldera::isfinite>, kNumeric, R::boolean, G::none),
      of_one("isinf", "isinf(x)", "Whether x is infinite.", {}, call_unary<caldera::isinf>, kNumeric,
             R::boolean, G::none),
      of_one("positive", "positive(x)", "x as it is.", {}, call_unary<caldera::positive>, kNumeric, R::same),
      with(
          of_one("clip", "clip(x, low=none, high=none)",
                 "min(max(x, low), high), each bound a number or a tensor, or absent; NaN if any is NaN. The "
                 "gradient at a bound is x's.",
                 kBetween, call_clip, kNumeric, R::same),
          clip_samples, clip_errors),
      of_two("fmax", "fmax(a, b)",
             "The larger of two; of a number and NaN the number. The gradient of ties is split equally.", {},
             kBetween, call_binary<caldera::fmax>, kNumeric, R::same),
      of_two("fmin", "fmin(a, b)",
             "The smaller of two; of a number and NaN the number. The gradient of ties is split equally.", {},
             kBetween, call_binary<caldera::fmin>, kNumeric, R::same),
      of_two("fmod", "fmod(a, b)", "The remainder of a / b rounded towards 0: it has the sign of a, as in C.",
             kBetween, kNotZero, call_binary<caldera::fmod>, kNumeric, R::same),
      of_one("frac", "frac(x)", "x - trunc(x).", kBetween, call_unary<caldera::frac>, kFloating, R::same),
      of_two("heaviside", "heaviside(x, values)", "0 below 0, 1 above, the values at 0; NaN of NaN.",
             kNotZero, {}, call_binary<caldera::heaviside>, kNumeric, R::same),
      with(of_one("nan_to_num", "nan_to_num(x, nan=0, positive_infinity=largest, negative_infinity=smallest)",
                  "x with NaN and infinities replaced.", {}, call_nan_to_num, kNumeric, R::same),
           nan_to_num_samples, no_errors),
      {.name = "lerp",
       .family = "functions",
       .signature = "lerp(start, end, weight)",
       .summary = "start + weight (end - start), exact at weights 0 and 1.",
       .types = kAnyType,
       .result = R::floating,
       .call = call_ternary<caldera::lerp>,
       .samples = lerp_samples,
       .errors = lerp_errors},
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
