// gradcheck catches wrong gradient rules: more than thirty functions, each with its right rule, which passes,
// and with a wrong one of a kind that people write.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/custom_vjp.h"
#include "engine/testing/gradcheck.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Results = std::vector<LazyTensor>;
using Forward = LazyTensor (*)(Inputs x);
/// Cotangents of the inputs, from the inputs, the result and its cotangent.
using Backward = Results (*)(Inputs x, const LazyTensor& y, const LazyTensor& g);

struct Defect {
  const char* name;
  std::vector<Shape> inputs;
  Forward forward;
  Backward right, wrong;
  bool tied = false;  // all numbers alike
};

LazyTensor sech2(const LazyTensor& y) { return 1.0 - y * y; }

const std::vector<Defect>& defects() {
  static const std::vector<Defect> kAll = {
      // Signs.
      {"SignOfASubtrahend",
       {{3}, {3}},
       [](Inputs x) { return x[0] - x[1]; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g, -g};
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g, g};
       }},
      {"SignOfCos",
       {{5}},
       [](Inputs x) { return cos(x[0]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results { return {-(g * sin(x[0]))}; },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results { return {g * sin(x[0])}; }},
      {"SignOfADenominator",
       {{4}, {4}},
       [](Inputs x) { return x[0] / x[1]; },
       [](Inputs x, const LazyTensor& y, const LazyTensor& g) -> Results {
         return {g / x[1], -(g * y / x[1])};
       },
       [](Inputs x, const LazyTensor& y, const LazyTensor& g) -> Results {
         return {g / x[1], g * y / x[1]};
       }},
      {"SignOfAReciprocal",
       {{4}},
       [](Inputs x) { return reciprocal(x[0]); },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {-(g * y * y)}; },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {g * y * y}; }},
      // Factors.
      {"FactorOfASquare",
       {{4}},
       [](Inputs x) { return x[0] * x[0]; },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results { return {2.0 * g * x[0]}; },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results { return {g * x[0]}; }},
      {"FactorOfASquareRoot",
       {{4}},
       [](Inputs x) { return sqrt(x[0]); },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {0.5 * g / y}; },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {g / y}; }},
      {"FactorOfAMean",
       {{2, 3}},
       [](Inputs x) { return mean(x[0]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {broadcast_to(g / 6.0, x[0].shape())};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {broadcast_to(g / 3.0, x[0].shape())};
       }},
      {"FactorOfErf",
       {{4}},
       [](Inputs x) { return erf(x[0]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g * exp(-(x[0] * x[0])) * (2 / std::sqrt(std::numbers::pi))};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g * exp(-(x[0] * x[0])) * 1.13};
       }},
      {"FactorOfOnePercent",
       {{4}},
       [](Inputs x) { return exp(x[0]); },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {g * y}; },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {g * y * 1.01}; }},
      {"FactorOfAnotherBaseOfLog",
       {{4}},
       [](Inputs x) { return log(x[0]) / std::numbers::ln2; },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g / (x[0] * std::numbers::ln2)};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results { return {g / x[0]}; }},
      // Broadcasting.
      {"BroadcastIsNotSummed",
       {{3}, {2, 3}},
       [](Inputs x) { return x[0] * x[1]; },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {sum(g * x[1], 0), g * x[0]};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {squeeze(slice(g * x[1], 0, 0, 1), 0), g * x[0]};
       }},
      {"BroadcastIsAveraged",
       {{3}, {2, 3}},
       [](Inputs x) { return x[0] + x[1]; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {sum(g, 0), g};
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {mean(g, 0), g};
       }},
      {"BroadcastIsSummedOverTheWrongAxis",
       {{3}, {3, 3}},
       [](Inputs x) { return x[0] + x[1]; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {sum(g, 0), g};
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {sum(g, 1), g};
       }},
      {"SumIsSpreadTwice",
       {{2, 3}},
       [](Inputs x) { return sum(x[0], 0); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {broadcast_to(g, x[0].shape())};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {broadcast_to(sum(g, 0, true), x[0].shape())};
       }},
      // Operands.
      {"OperandsOfAProductAreSwapped",
       {{4}, {4}},
       [](Inputs x) { return x[0] * x[1]; },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g * x[1], g * x[0]};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g * x[0], g * x[1]};
       }},
      {"OperandsOfAtan2AreSwapped",
       {{4}, {4}},
       [](Inputs x) { return atan2(x[0], x[1]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         const LazyTensor s = g / (x[0] * x[0] + x[1] * x[1]);
         return {s * x[1], -(s * x[0])};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         const LazyTensor s = g / (x[0] * x[0] + x[1] * x[1]);
         return {s * x[0], -(s * x[1])};
       }},
      {"AMatrixIsNotTransposed",
       {{3, 3}, {3, 3}},
       [](Inputs x) { return matmul(x[0], x[1]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {matmul(g, transpose(x[1])), matmul(transpose(x[0]), g)};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {matmul(g, x[1]), matmul(transpose(x[0]), g)};
       }},
      {"AProductIsTheWrongWayRound",
       {{3, 3}, {3, 3}},
       [](Inputs x) { return matmul(x[0], x[1]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {matmul(g, transpose(x[1])), matmul(transpose(x[0]), g)};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {matmul(g, transpose(x[1])), matmul(g, transpose(x[0]))};
       }},
      {"ThePermutationIsNotInverted",
       {{2, 2, 2}},
       [](Inputs x) {
         return permute_dims(x[0], {1, 2, 0});
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {permute_dims(g, {2, 0, 1})};
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {permute_dims(g, {1, 2, 0})};
       }},
      // Terms.
      {"SoftmaxWithoutItsSum",
       {{4}},
       [](Inputs x) { return softmax(x[0]); },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {y * (g - sum(g * y))}; },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {y * g}; }},
      {"LogSoftmaxWithoutItsSoftmax",
       {{4}},
       [](Inputs x) { return log_softmax(x[0]); },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {g - exp(y) * sum(g)}; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {g - mean(g)}; }},
      {"SiluWithoutItsSecondTerm",
       {{4}},
       [](Inputs x) { return x[0] * sigmoid(x[0]); },
       [](Inputs x, const LazyTensor& y, const LazyTensor& g) -> Results {
         const LazyTensor s = sigmoid(x[0]);
         return {g * (s + y * (1.0 - s))};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results { return {g * sigmoid(x[0])}; }},
      {"ANormalisationWhoseScaleIsConstant",
       {{5}},
       [](Inputs x) { return x[0] * rsqrt(mean(x[0] * x[0])); },
       [](Inputs x, const LazyTensor& y, const LazyTensor& g) -> Results {
         const LazyTensor scale = rsqrt(mean(x[0] * x[0]));
         return {scale * (g - y * mean(g * y))};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g * rsqrt(mean(x[0] * x[0]))};
       }},
      {"AVarianceWhoseMeanIsConstant",
       {{5}},
       [](Inputs x) { return (x[0] - mean(x[0])) * 2.0; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {2.0 * (g - mean(g))}; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {2.0 * g}; }},
      {"ACotangentIsForgotten",
       {{4}},
       [](Inputs x) { return tanh(x[0]); },
       [](Inputs, const LazyTensor& y, const LazyTensor& g) -> Results { return {g * sech2(y)}; },
       [](Inputs, const LazyTensor& y, const LazyTensor&) -> Results { return {sech2(y)}; }},
      {"AnInputIsForgotten",
       {{4}, {4}},
       [](Inputs x) { return x[0] * exp(x[1]); },
       [](Inputs x, const LazyTensor& y, const LazyTensor& g) -> Results {
         return {g * exp(x[1]), g * y};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g * exp(x[1]), LazyTensor()};
       }},
      // Choices and ties.
      {"AMaximumWhoseLoserGetsTheGradient",
       {{4}, {4}},
       [](Inputs x) { return maximum(x[0], x[1]); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {where(x[0] > x[1], g, zeros_like(g)), where(x[0] > x[1], zeros_like(g), g)};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {where(x[0] < x[1], g, zeros_like(g)), where(x[0] < x[1], zeros_like(g), g)};
       }},
      {"AMaximumThatAllShare",
       {{5}},
       [](Inputs x) { return max(x[0]); },
       [](Inputs x, const LazyTensor& y, const LazyTensor& g) -> Results {
         return {where(equal(x[0], y), broadcast_to(g, x[0].shape()), zeros_like(x[0]))};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {broadcast_to(g / 5.0, x[0].shape())};
       }},
      {"ATieThatTheFirstTakes",
       {{4}, {4}},
       [](Inputs x) { return maximum(x[0], x[1]); },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g / 2.0, g / 2.0};
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results {
         return {g, zeros_like(g)};
       },
       true},
      {"ATieThatAllTake",
       {{2}},
       [](Inputs x) { return amax(x[0]); },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {broadcast_to(g / 2.0, {2})}; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {broadcast_to(g, {2})}; },
       true},
      {"AClipThatPassesEverything",
       {{6}},
       [](Inputs x) { return minimum(x[0], 0.9); },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         return {where(x[0] < 0.9, g, zeros_like(g))};
       },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {g}; }},
      // Places.
      {"ASliceThatLandsOneLater",
       {{5}},
       [](Inputs x) { return slice(x[0], 0, 1, 4); },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {pad(g, {1}, {1})}; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {pad(g, {2}, {0})}; }},
      {"GatheredRowsThatOverwrite",
       {{3, 2}},
       [](Inputs x) {
         return take(x[0], LazyTensor::from_vector(std::vector<std::int32_t>{1, 1, 2}, {3}, Device::cpu()));
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         const LazyTensor rows =
             LazyTensor::from_vector(std::vector<std::int32_t>{1, 1, 2}, {3}, Device::cpu());
         return {scatter_add(zeros_like(x[0]), rows, g)};
       },
       [](Inputs x, const LazyTensor&, const LazyTensor& g) -> Results {
         const LazyTensor rows = LazyTensor::from_vector(std::vector<std::int32_t>{1, 2}, {2}, Device::cpu());
         return {scatter_add(zeros_like(x[0]), rows, slice(g, 0, 1, 3))};
       }},
      {"ATriangleThatIsWhole",
       {{3, 3}},
       [](Inputs x) { return tril(x[0]); },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {tril(g)}; },
       [](Inputs, const LazyTensor&, const LazyTensor& g) -> Results { return {g}; }},
  };
  return kAll;
}

class SeededDefects : public ::testing::TestWithParam<std::size_t> {
 protected:
  static const Defect& defect() { return defects()[GetParam()]; }
  /// Between 0.5 and 1.3, no two alike; where a tie is tried, all alike: central differences give the mean of
  /// both slopes there, so of two that are tied each has half.
  static Results inputs() {
    Results all;
    for (const Shape& shape : defect().inputs) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < shape.numel(); ++i)
        values.push_back(defect().tied ? 0.75
                                       : 0.5 + 0.8 * std::fmod(0.37 * static_cast<double>(i + 1) +
                                                                   0.13 * static_cast<double>(all.size()),
                                                               1.0));
      all.push_back(LazyTensor::from_vector(values, shape, Device::cpu()));
    }
    return all;
  }
  static VectorFunction function(Backward rule) {
    const Forward forward = defect().forward;
    return custom_vjp({.name = defect().name,
                       .forward = [forward](Inputs x) -> Results { return {forward(x)}; },
                       .backward = [rule](Inputs x, Inputs y, Inputs g) { return rule(x, y[0], g[0]); }});
  }
};

/// The derivatives that a message says were compared, analytical and numerical; NaN if it speaks of none.
std::pair<double, double> compared(const std::string& message) {
  const std::string is = " is ", numerical = ", central differences give ";
  const std::size_t end = message.rfind(numerical), begin = message.rfind(is, end);
  if (end == std::string::npos || begin == std::string::npos) return {NAN, NAN};
  return {std::stod(message.substr(begin + is.size())), std::stod(message.substr(end + numerical.size()))};
}

INSTANTIATE_TEST_SUITE_P(Rules, SeededDefects, ::testing::Range(std::size_t{0}, defects().size()),
                         [](const auto& row) { return std::string(defects()[row.param].name); });

TEST_P(SeededDefects, AreCaughtAndTheRightRuleIsNot) {
  for (const bool fast : {false, true}) {
    SCOPED_TRACE(fast ? "fast" : "every element");
    const GradcheckResult right = gradcheck(function(defect().right), inputs(), {.fast = fast});
    EXPECT_TRUE(right) << right.message;
    const GradcheckResult wrong = gradcheck(function(defect().wrong), inputs(), {.fast = fast});
    EXPECT_FALSE(wrong);
    // For that reason and no other: both numbers are there, and they differ.
    const auto [analytical, numerical] = compared(wrong.message);
    EXPECT_GT(std::abs(analytical - numerical), 1e-5 + 1e-3 * std::abs(numerical)) << wrong.message;
    const GradcheckResult second = gradgradcheck(function(defect().right), inputs(), {.fast = fast});
    EXPECT_TRUE(second) << second.message;
  }
}

TEST(SeededDefectsSuite, HasThirtyOrMore) { EXPECT_GE(defects().size(), 30U); }

}  // namespace
}  // namespace caldera::testing
