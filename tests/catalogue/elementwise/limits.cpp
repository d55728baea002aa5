// The entries of the family `limits`.
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/elementwise/function_entries.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
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
  return unary_samples_with(operation,
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
      of_one("signbit", "signbit(x)", "Whether the sign is negative, that of -0 and of NaN included.",
             call_unary<caldera::signbit>, kNumeric, R::boolean, G::none),
      of_one("isfinite", "isfinite(x)", "Whether x is neither infinite nor NaN.",
             call_unary<caldera::isfinite>, kNumeric, R::boolean, G::none),
      of_one("isinf", "isinf(x)", "Whether x is infinite.", call_unary<caldera::isinf>, kNumeric, R::boolean,
             G::none),
      of_one("positive", "positive(x)", "x as it is.", call_unary<caldera::positive>, kNumeric, R::same),
      with(
          of_one("clip", "clip(x, low=none, high=none)",
                 "min(max(x, low), high), each bound a number or a tensor, or absent; NaN if any is NaN. The "
                 "gradient at a bound is x's.",
                 kBetween, call_clip, kNumeric, R::same),
          clip_samples, clip_errors),
      of_two("fmax", "fmax(a, b)",
             "The larger of two; of a number and NaN the number. The gradient of ties is split equally.",
             Range{}, kBetween, call_binary<caldera::fmax>, kNumeric, R::same),
      of_two("fmin", "fmin(a, b)",
             "The smaller of two; of a number and NaN the number. The gradient of ties is split equally.",
             Range{}, kBetween, call_binary<caldera::fmin>, kNumeric, R::same),
      of_two("fmod", "fmod(a, b)", "The remainder of a / b rounded towards 0: it has the sign of a, as in C.",
             kBetween, kNotZero, call_binary<caldera::fmod>, kNumeric, R::same),
      of_one("frac", "frac(x)", "x - trunc(x).", kBetween, call_unary<caldera::frac>, kFloating, R::same),
      of_two("heaviside", "heaviside(x, values)", "0 below 0, 1 above, the values at 0; NaN of NaN.",
             kNotZero, call_binary<caldera::heaviside>, kNumeric, R::same),
      with(of_one("nan_to_num", "nan_to_num(x, nan=0, positive_infinity=largest, negative_infinity=smallest)",
                  "x with NaN and infinities replaced.", call_nan_to_num, kNumeric, R::same),
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

}  // namespace caldera::catalogue
