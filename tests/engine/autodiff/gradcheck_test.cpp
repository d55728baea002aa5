// The public gradcheck and gradgradcheck: what passes, what fails and why they say it does.
// tests/ops/operations/seeded_defects_test.cpp holds them to many wrong rules.
#include "tests/support/transforms/gradcheck.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Tensors = std::vector<LazyTensor>;
using Doubles = std::vector<double>;

/// Why a check failed.
std::string failure_of(const GradcheckResult& result) {
  EXPECT_FALSE(result) << "the check passed";
  return result.message;
}

/// The number that follows the last `text` in a message.
double number_after(const std::string& message, const std::string& text) {
  const std::size_t at = message.rfind(text);
  EXPECT_NE(at, std::string::npos) << message;
  return at == std::string::npos ? std::nan("") : std::stod(message.substr(at + text.size()));
}

using BackwardOfOne = LazyTensor (*)(const LazyTensor& x, const LazyTensor& g);

/// 3 x with rules that say other things of it.
VectorFunction tripled(BackwardOfOne backward, BackwardOfOne tangent = nullptr) {
  CustomVjp rule{.name = "tripled", .forward = [](Inputs a) { return Tensors{a[0] * 3.0}; }};
  rule.backward = [backward](Inputs a, Inputs, Inputs g) { return Tensors{backward(a[0], g[0])}; };
  if (tangent != nullptr) {
    rule.tangent = [tangent](Inputs a, Inputs, Inputs t) { return Tensors{tangent(a[0], t[0])}; };
  }
  return custom_vjp(rule);
}
LazyTensor three_times(const LazyTensor&, const LazyTensor& along) { return along * 3.0; }
LazyTensor four_times(const LazyTensor&, const LazyTensor& along) { return along * 4.0; }
LazyTensor three_times_whole(const LazyTensor&, const LazyTensor& along) {
  return astype(along * 3.0, DType::i32);
}

// ---- what it takes

TEST(Gradcheck, TakesFunctionsOfEveryKind) {
  const LazyTensor x = vector_of({0.5, 1.5}), y = vector_of({0.25, 2});
  const auto unary = [](const LazyTensor& a) { return sin(a); };
  const auto generic = [](auto a) { return a * a; };
  const auto to_one = [](Inputs a) { return a[0] * a[1]; };
  const auto to_many = [](Inputs a) { return Tensors{a[0] * a[1], tanh(a[0])}; };
  const Tensors both{x, y};
  EXPECT_TRUE(gradcheck(unary, x));
  EXPECT_TRUE(gradcheck(unary, {x}));
  EXPECT_TRUE(gradcheck(unary, {&x, 1}));
  EXPECT_TRUE(gradcheck(generic, x));
  EXPECT_TRUE(gradcheck(UnaryFunction(unary), x, {.fast = true}));
  EXPECT_TRUE(gradcheck(to_one, {x, y}));
  EXPECT_TRUE(gradcheck(TensorFunction(to_one), both));
  EXPECT_TRUE(gradcheck(to_many, {x, y}, {.forward = true}));
  EXPECT_TRUE(gradcheck(VectorFunction(to_many), std::array{x, y}));
  EXPECT_TRUE(gradcheck(custom_vjp(to_one,
                                   [](Inputs a, const LazyTensor&, const LazyTensor& g) {
                                     return Tensors{g * a[1], g * a[0]};
                                   }),
                        {x, y}));
  EXPECT_TRUE(gradgradcheck(unary, x));
  EXPECT_TRUE(gradgradcheck(unary, {x}, {.forward = true}));
  EXPECT_TRUE(gradgradcheck(to_one, {x, y}));
  EXPECT_TRUE(gradgradcheck(to_many, both));
  EXPECT_FALSE(gradcheck([](const LazyTensor& a) { return stop_gradient(a) * a; }, x));
  EXPECT_FALSE(gradcheck([](Inputs a) { return stop_gradient(a[0]) * a[1]; }, {x, y}));
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)gradcheck(unary, {x, y}); }), "2 inputs");
}

TEST(Gradcheck, TakesIntegersBesideFloatingInputs) {
  const LazyTensor rows = LazyTensor::from_vector(std::vector<std::int32_t>{2, 0, 2}, {3}, Device::cpu());
  const LazyTensor x = cpu_tensor({1, 2, 3, 4, 5, 6}, {3, 2});
  const auto function = [](Inputs a) { return Tensors{a[0] + 1, square(take(a[1], a[0]))}; };
  for (const bool fast : {false, true}) {
    const GradcheckResult first = gradcheck(function, {rows, x}, {.fast = fast, .forward = true});
    EXPECT_TRUE(first) << first.message;
    const GradcheckResult second = gradgradcheck(function, {rows, x}, {.fast = fast, .forward = true});
    EXPECT_TRUE(second) << second.message;
  }
  const auto cut = [](Inputs a) { return Tensors{a[0], a[1] * stop_gradient(a[1])}; };
  EXPECT_MENTIONS(failure_of(gradcheck(cut, {rows, x})),
                  "of output 1 (element 0 of shape " + x.shape().to_string() + ") by input 1 (element");
}

TEST(Gradcheck, LetsTheFunctionEvaluateInside) {
  const auto function = [](Inputs a) {
    const LazyTensor h = sin(a[0]);
    h.eval();
    const LazyTensor y = h * h * a[1];
    return Tensors{y, h + y.to_vector<double>()[0] * 0.0};
  };
  const LazyTensor x = vector_of({0.5, 1.5}), y = vector_of({3, 2});
  for (const bool fast : {false, true}) {
    const GradcheckResult first = gradcheck(function, {x, y}, {.fast = fast, .forward = true});
    EXPECT_TRUE(first) << first.message;
    const GradcheckResult second = gradgradcheck(function, {x, y}, {.fast = fast, .forward = true});
    EXPECT_TRUE(second) << second.message;
  }
}

TEST(Gradcheck, RefusesWhatLeavesNothingToCheck) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor whole = LazyTensor::from_vector(std::vector<std::int32_t>{1, 2}, {2}, Device::cpu());
  const auto same = [](Inputs a) { return Tensors{a.begin(), a.end()}; };
  const auto nothing = [](Inputs) { return Tensors{}; };
  const auto sign_of = [](Inputs a) { return Tensors{a[0] > 0.0, astype(a[0], DType::i32)}; };
  const auto empty = [](Inputs a) { return Tensors{a[0], LazyTensor()}; };
  using Check =
      GradcheckResult (*)(const CheckedFunction&, std::initializer_list<LazyTensor>, const GradcheckOptions&);
  const auto refuses = [](Check check, const std::string& name) {
    return [=](const CheckedFunction& function, std::initializer_list<LazyTensor> inputs, const char* why,
               const GradcheckOptions& options = {}) {
      const std::string message = message_of<ValueError>([&] { (void)check(function, inputs, options); });
      EXPECT_EQ(message.rfind(name + ": ", 0), 0U) << message;
      EXPECT_MENTIONS(message, why);
    };
  };
  for (const auto& refused : {refuses(gradcheck, "gradcheck"), refuses(gradgradcheck, "gradgradcheck")}) {
    refused(same, {whole}, "none of the 1 inputs is floating");
    refused(same, {}, "none of the 0 inputs is floating");
    refused(nothing, {x}, "none of the function's 0 results is floating");
    refused(sign_of, {x}, "none of the function's 2 results is floating");
    refused(empty, {x}, "result 1 of the function is an empty tensor");
    refused(same, {x, LazyTensor()}, "input 1 is an empty tensor");
    refused(same, {x}, "eps", {.eps = 0});
  }
  const LazyTensor narrow = astype(x, DType::f32);
  EXPECT_MENTIONS(message_of<DTypeError>([&] {
                    (void)gradcheck(same, {x, narrow});
                  }),
                  "gradcheck: input 1 of shape");
  EXPECT_MENTIONS(message_of<DTypeError>([&] { (void)gradgradcheck(same, narrow); }), "gradgradcheck: ");
}

// ---- derivatives that are wrong

/// Sum and product of arguments 1 and 2; the product's gradient by the latter is wrong in its last element.
const VectorFunction& wrong_in_one_element() {
  static const VectorFunction kFunction = custom_vjp(
      {.forward =
           [](Inputs a) {
             return Tensors{a[1] + a[2], a[1] * a[2]};
           },
       .backward =
           [](Inputs a, Inputs, Inputs g) {
             return Tensors{LazyTensor(), g[0] + g[1] * a[2], g[0] + g[1] * a[1] * vector_of({1, 1, 3})};
           }});
  return kFunction;
}

TEST(Gradcheck, NamesWhatDiffers) {
  const LazyTensor whole = LazyTensor::from_vector(std::vector<std::int32_t>{1}, {1}, Device::cpu());
  const Tensors at{whole, vector_of({2, 3, 4}), vector_of({5, 6, 7})};
  const std::string shape = Shape{3}.to_string();
  const std::string element = failure_of(gradcheck(wrong_in_one_element(), at));
  EXPECT_MENTIONS(element, "the derivative of output 1 (element 2 of shape " + shape +
                               ") by input 2 (element 2 of shape " + shape + ") is 12, central differences");
  EXPECT_NEAR(number_after(element, "central differences give "), 4, 1e-6);
  const std::string fast = failure_of(gradcheck(wrong_in_one_element(), at, {.fast = true}));
  EXPECT_MENTIONS(fast, "of output 1 (shape " + shape + ") by input 2 (shape " + shape + ")");
  EXPECT_GT(std::abs(number_after(fast, " is ") - number_after(fast, "central differences give ")), 1e-3);
}

TEST(Gradcheck, ChecksTangentsWhenAsked) {
  const LazyTensor x = vector_of({1, 2});
  const VectorFunction wrong = tripled(three_times, four_times);
  for (const bool fast : {false, true}) {
    EXPECT_TRUE(gradcheck(tripled(three_times, three_times), x, {.fast = fast, .forward = true}));
    EXPECT_TRUE(gradcheck(wrong, x, {.fast = fast}));
    const std::string why = failure_of(gradcheck(wrong, x, {.fast = fast, .forward = true}));
    EXPECT_MENTIONS(why, "forward mode: ");
    EXPECT_NEAR(number_after(why, " is ") / number_after(why, "central differences give "), 4.0 / 3, 1e-6);
  }
}

TEST(Gradcheck, SaysThatADerivativeCannotBeMade) {
  const LazyTensor x = vector_of({1, 2});
  const std::string tangent = failure_of(gradcheck(tripled(three_times), x, {.forward = true}));
  EXPECT_MENTIONS(tangent, "forward mode: ");
  EXPECT_MENTIONS(tangent, "'tripled'");
  const VectorFunction longer = tripled([](const LazyTensor&, const LazyTensor& g) {
    return concat({g, g}, 0);
  });
  EXPECT_MENTIONS(failure_of(gradcheck(longer, x)), "reverse mode: ");
  EXPECT_MENTIONS(failure_of(gradgradcheck(longer, x)), "reverse mode: ");
}

TEST(Gradcheck, CatchesRulesThatAreRightForZeroAndOneOnly) {
  const BackwardOfOne of_size = [](const LazyTensor&, const LazyTensor& along) { return abs(along) * 3.0; };
  const BackwardOfOne of_square = [](const LazyTensor&, const LazyTensor& along) {
    return along * along * 3.0;
  };
  const BackwardOfOne of_positive = [](const LazyTensor&, const LazyTensor& along) {
    return maximum(along, 0.0) * 3.0;
  };
  for (const LazyTensor& x : {vector_of({1}), vector_of({1, 2, 5})}) {
    for (const BackwardOfOne wrong : {BackwardOfOne(three_times_whole), of_size, of_square, of_positive}) {
      EXPECT_FALSE(gradcheck(tripled(wrong), x));
      EXPECT_FALSE(gradcheck(tripled(three_times, wrong), x, {.forward = true}));
    }
    EXPECT_FALSE(gradcheck(tripled(three_times_whole), x, {.fast = true}));
    EXPECT_FALSE(gradcheck(tripled(three_times, three_times_whole), x, {.fast = true, .forward = true}));
  }
}

TEST(Gradcheck, OfARuleThatIsRightToFirstOrderOnly) {
  CustomVjp rule{.forward = [](Inputs a) { return Tensors{a[0] * a[0]}; }};
  rule.backward = [](Inputs a, Inputs, Inputs g) { return Tensors{g[0] * stop_gradient(a[0]) * 2.0}; };
  const LazyTensor x = vector_of({1, 2});
  for (const bool fast : {false, true}) {
    EXPECT_TRUE(gradcheck(custom_vjp(rule), x, {.fast = fast}));
    const std::string why = failure_of(gradgradcheck(custom_vjp(rule), x, {.fast = fast}));
    EXPECT_EQ(why.rfind("second derivative", 0), 0U) << why;
    EXPECT_MENTIONS(why, "of output 0 (");
    EXPECT_MENTIONS(why, "by input 0 (");
  }
}

TEST(Gradcheck, OfInfiniteDerivativesSaysThatTheyDiffer) {
  const auto why = [](const UnaryFunction& function, bool fast) {
    return failure_of(gradcheck(function, vector_of({0}), {.fast = fast}));
  };
  for (const bool fast : {false, true}) {
    const std::string root = why([](const LazyTensor& a) { return sqrt(a); }, fast);
    EXPECT_MENTIONS(root, "inf, central differences give ");
    EXPECT_MENTIONS(why([](const LazyTensor& a) { return (a + 1.0) / 0.0; }, fast), "central differences");
    // The difference is infinite, and so is what it allows.
    const std::string jump = why(
        [](const LazyTensor& a) {
          return where(a > 0.0, a + std::numeric_limits<double>::infinity(), a * 5.0);
        },
        fast);
    EXPECT_TRUE(std::isinf(number_after(jump, "central differences give "))) << jump;
  }
}

TEST(Gradcheck, AtAKinkWantsTheMeanOfBothSlopes) {
  const LazyTensor zero = vector_of({0, 1}), ties = cpu_tensor({3, 1, 3, 2}, {1, 4});
  EXPECT_TRUE(gradcheck([](const LazyTensor& a) { return abs(a); }, zero, {.forward = true}));
  EXPECT_TRUE(gradcheck([](Inputs a) { return maximum(a[0], a[1]); }, {zero, zero}, {.forward = true}));
  EXPECT_TRUE(gradcheck([](const LazyTensor& a) { return amax(a, 1); }, ties, {.forward = true}));
  EXPECT_TRUE(gradcheck([](const LazyTensor& a) { return max(a); }, ties, {.forward = true}));
  const auto shares = [](const UnaryFunction& function, const LazyTensor& at) {
    const std::string why = failure_of(gradcheck(function, at));
    EXPECT_NEAR(number_after(why, "central differences give "), 0.5, 1e-6) << why;
    return number_after(why, " is ");
  };
  EXPECT_EQ(shares([](const LazyTensor& a) { return relu(a); }, zero), 0);
  EXPECT_EQ(shares([](const LazyTensor& a) { return max(a, 1); }, ties), 1);
}

// ---- functions that do not give the same again

TEST(Gradcheck, SaysThatAFunctionIsNotDeterministic) {
  const LazyTensor x = vector_of({1, 2});
  const auto noisy = [](double noise) {
    return [noise, calls = std::make_shared<int>(0)](const LazyTensor& a) {
      return a * a + vector_of({0, noise}) * (++*calls);
    };
  };
  for (const bool fast : {false, true}) {
    const std::string why = failure_of(gradcheck(noisy(0.25), x, {.fast = fast}));
    EXPECT_MENTIONS(why, "not deterministic: output 0 (element 1 of shape");
    EXPECT_MENTIONS(why, "is 4.25 and 4.5");
    EXPECT_FALSE(gradcheck(noisy(1e-12), x, {.fast = fast}));
    EXPECT_TRUE(gradcheck(noisy(1e-12), x, {.fast = fast, .nondet_tol = 1e-11}));
  }
}

TEST(Gradcheck, SaysThatAGradientIsNotDeterministic) {
  const LazyTensor x = vector_of({1, 2});
  const auto noisy = [] {
    CustomVjp rule{.forward = [](Inputs a) { return Tensors{a[0] * 3.0}; }};
    rule.backward = [calls = std::make_shared<int>(0)](Inputs, Inputs, Inputs g) {
      return Tensors{g[0] * (3.0 + 1e-7 * ++*calls)};
    };
    return custom_vjp(rule);
  };
  for (const bool fast : {false, true}) {
    EXPECT_MENTIONS(failure_of(gradcheck(noisy(), x, {.fast = fast})),
                    "not deterministic: the gradient of input 0 (element 0 of shape");
    const GradcheckResult allowed = gradcheck(noisy(), x, {.fast = fast, .nondet_tol = 1e-6});
    EXPECT_TRUE(allowed) << allowed.message;
  }
}

TEST(Gradcheck, SaysThatResultsChange) {
  const auto changed_from = [](int call, const VectorFunction& later) {
    return [call, later, calls = std::make_shared<int>(0)](Inputs a) {
      return ++*calls < call ? Tensors{a[0] * 2.0, a[0] * a[0]} : later(a);
    };
  };
  const auto fewer = [](Inputs a) { return Tensors{a[0] * 2.0}; };
  const auto none = [](Inputs) { return Tensors{}; };
  const auto more = [](Inputs a) { return Tensors{a[0] * 2.0, a[0] * a[0], a[0]}; };
  const auto shorter = [](Inputs a) { return Tensors{a[0] * 2.0, slice(a[0] * a[0], 0, 0, 1)}; };
  const auto longer = [](Inputs a) { return Tensors{a[0] * 2.0, concat({a[0] * a[0], a[0]}, 0)}; };
  const auto narrower = [](Inputs a) { return Tensors{a[0] * 2.0, astype(a[0] * a[0], DType::f32)}; };
  const auto whole = [](Inputs a) { return Tensors{a[0] * 2.0, astype(a[0] * a[0], DType::i32)}; };
  const LazyTensor x = vector_of({1, 2, 3});
  const auto check = [&](const VectorFunction& later, const char* part) {
    // The second call is at the same point; later ones are for gradients, differences and tangents.
    for (const int call : {2, 3, 4, 5, 8, 9, 10, 12}) {
      for (const bool fast : {false, true}) {
        SCOPED_TRACE(call);
        const GradcheckOptions options{.fast = fast, .forward = true};
        const std::string first = failure_of(gradcheck(changed_from(call, later), x, options));
        EXPECT_MENTIONS(first, "not deterministic: ");
        EXPECT_MENTIONS(first, part);
        const std::string second = failure_of(gradgradcheck(changed_from(call, later), x, options));
        EXPECT_MENTIONS(second, "not deterministic: ");
        EXPECT_MENTIONS(second, part);
      }
    }
  };
  check(fewer, "it gave 2 results at first and 1 in a later call");
  check(none, "it gave 2 results at first and 0 in a later call");
  check(more, "it gave 2 results at first and 3 in a later call");
  const std::string three = Shape{3}.to_string();
  check(shorter, "output 1 was");
  check(longer, "output 1 was");
  check(narrower, "output 1 was");
  check(whole, "output 1 was");
  const std::string why = failure_of(gradcheck(changed_from(3, shorter), x));
  EXPECT_MENTIONS(why, "of shape " + three + " at first and ");
  EXPECT_MENTIONS(why, "of shape " + Shape{1}.to_string() + " in a later call");
}

}  // namespace
}  // namespace caldera::testing
