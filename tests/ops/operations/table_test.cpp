// Every entry of the table of operations: types, refusals, layouts, gradients.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/vmap.h"
#include "engine/testing/gradcheck.h"
#include "tests/ops/operations/every_operation.h"
#include "tests/support/operation_calls.h"

namespace caldera::testing {
namespace {

using catalogue::Operation;
using catalogue::Sample;

constexpr const auto& kAll = kAllDTypes;

/// The types in which the operation's samples are called: those that it accepts, or none in particular.
std::vector<DType> call_types(const Operation& operation) {
  std::vector<DType> out;
  for (const DType type : kAll) {
    if (operation.types.contains(type)) out.push_back(type);
  }
  if (out.empty()) out.push_back(DType::f32);
  return out;
}

class OfOperation : public OperationTest {};
class OnDevice : public OperationDeviceTest {};

TEST_P(OfOperation, ResultsHaveTheTypeOfTheRule) {
  for (const DType type : call_types(operation())) {
    for (const Sample& sample : samples()) {
      SCOPED_TRACE(std::string(name(type)) + " " + sample.to_string());
      for (const LazyTensor& result :
           operation().call(operands_of(sample, type, Layout::plain, Device::cpu()), sample.arguments)) {
        EXPECT_EQ(name(result.dtype()),
                  name(catalogue::result_type(operation().result, type, sample.arguments)));
        EXPECT_NO_THROW(result.eval());
      }
    }
  }
}

TEST_P(OfOperation, RefusesOtherTypes) {
  const std::vector<Sample> all = samples();
  ASSERT_FALSE(all.empty());
  for (const DType type : kAll) {
    const bool open = std::any_of(all[0].operands.begin(), all[0].operands.end(),
                                  [](const catalogue::Operand& operand) { return operand.varies(); });
    if (!open || operation().types.contains(type)) continue;
    SCOPED_TRACE(name(type));
    // In shapes in which the call would be right.
    try {
      operation().call(operands_of(all[0], type, Layout::plain, Device::cpu()), all[0].arguments);
      ADD_FAILURE() << "accepted";
    } catch (const DTypeError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(GetParam()), std::string::npos) << message;
      EXPECT_NE(message.find(name(type)), std::string::npos) << message;
    }
  }
}

TEST_P(OfOperation, RefusesBadCalls) {
  for (const catalogue::ErrorSample& bad : operation().errors(operation())) {
    const Sample sample{bad.operands, bad.arguments};
    SCOPED_TRACE(sample.to_string());
    std::string message;
    try {
      operation().call(operands_of(sample, bad.type, Layout::plain, Device::cpu()), bad.arguments);
      ADD_FAILURE() << "accepted";
      continue;
    } catch (const ShapeError& error) {
      EXPECT_EQ(bad.refusal, catalogue::Refusal::shape) << error.what();
      message = error.what();
    } catch (const DTypeError& error) {
      EXPECT_EQ(bad.refusal, catalogue::Refusal::dtype) << error.what();
      message = error.what();
    } catch (const ValueError& error) {
      EXPECT_EQ(bad.refusal, catalogue::Refusal::value) << error.what();
      message = error.what();
    }
    EXPECT_TRUE(message.starts_with(GetParam() + ":")) << message;
    EXPECT_NE(message.find(bad.mentions), std::string::npos) << message;
  }
}

TEST_P(OnDevice, LayoutsDoNotChangeResults) {
  const DType type = operation().types.contains(DType::f32) ? DType::f32 : call_types(operation())[0];
  for (const Sample& sample : samples()) {
    const auto plain = operation().call(operands_of(sample, type, Layout::plain, device()), sample.arguments);
    eval(plain);
    for (const Layout layout : {Layout::permuted, Layout::sliced, Layout::reversed}) {
      SCOPED_TRACE(sample.to_string() + " " + to_string(layout));
      const auto laid = operation().call(operands_of(sample, type, layout, device()), sample.arguments);
      eval(laid);
      ASSERT_EQ(plain.size(), laid.size());
      for (std::size_t k = 0; k < plain.size(); ++k) {
        ASSERT_EQ(plain[k].shape(), laid[k].shape());
        const std::vector<double> a = numbers(plain[k]);
        const std::vector<double> b = numbers(laid[k]);
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (std::isnan(a[i]) && std::isnan(b[i])) continue;
          if (a[i] == b[i]) continue;  // infinities
          ASSERT_LE(std::abs(a[i] - b[i]), 2e-6 * (1 + std::abs(a[i]))) << "element " << i;
        }
      }
    }
  }
}

TEST_P(OfOperation, GradientsAgreeWithDifferences) {
  if (!operation().types.contains(DType::f64)) GTEST_SKIP() << "takes no floating operands";
  if (operation().gradient == catalogue::Gradient::none) GTEST_SKIP() << "has no gradient";
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.to_string());
    const std::vector<LazyTensor> operands = operands_of(sample, DType::f64, Layout::plain, Device::cpu());
    const VectorFunction call = [&](std::span<const LazyTensor> x) {
      return operation().call(x, sample.arguments);
    };
    // A narrower result makes differences of small steps meaningless.
    if (call(operands)[0].dtype() != DType::f64) continue;
    if (operation().gradient == catalogue::Gradient::zero) {
      // By definition, not by differences: those of a step are infinite.
      const std::vector<LazyTensor> results = call(operands);
      const std::vector<LazyTensor> cotangents{ones_like(results[0])};
      for (const LazyTensor& slope : vjp({results.data(), 1}, operands, cotangents)) {
        for (const double value : numbers(slope)) ASSERT_EQ(value, 0);
      }
      continue;
    }
    const GradcheckResult first = gradcheck(call, operands, {.forward = true});
    EXPECT_TRUE(first) << first.message;
    const GradcheckResult second = gradgradcheck(call, operands, {.fast = true, .forward = true});
    EXPECT_TRUE(second) << second.message;
  }
}

/// The same operand of several examples along a new axis 0.
LazyTensor examples_of(const Sample& sample, std::size_t position, DType type, std::size_t count) {
  const catalogue::Operand& operand = sample.operands[position];
  std::vector<LazyTensor> each;
  for (std::size_t k = 0; k < count; ++k) {
    const Host values(operand.shape, catalogue::values_of(operand, position + 16 * k, type));
    each.push_back(upload(values, operand.dtype.value_or(type), Device::cpu()));
  }
  return stack(each);
}

TEST_P(OfOperation, MapsLikeALoop) {
  constexpr std::size_t kExamples = 3;
  const DType type = operation().types.contains(DType::f64) ? DType::f64 : call_types(operation())[0];
  for (const Sample& sample : samples()) {
    const std::size_t count = sample.operands.size();
    if (count == 0) GTEST_SKIP() << "has no operands";
    // All operands mapped, then each one alone.
    for (std::size_t alone = 0; alone <= (count > 1 ? count : 0); ++alone) {
      SCOPED_TRACE(sample.to_string() +
                   (alone == 0 ? "" : ", operand " + std::to_string(alone - 1) + " alone"));
      std::vector<LazyTensor> operands;
      std::vector<std::optional<int>> axes;
      for (std::size_t i = 0; i < count; ++i) {
        const bool mapped = alone == 0 || alone == i + 1;
        const LazyTensor examples = examples_of(sample, i, type, kExamples);
        operands.push_back(mapped ? examples : squeeze(slice(examples, 0, 0, 1), 0));
        axes.push_back(mapped ? std::optional<int>(0) : std::nullopt);
      }
      const VectorFunction call = [&](std::span<const LazyTensor> x) {
        return operation().call(x, sample.arguments);
      };
      const std::vector<LazyTensor> mapped = vmap(call, axes, 0)(operands);
      for (std::int64_t k = 0; k < static_cast<std::int64_t>(kExamples); ++k) {
        std::vector<LazyTensor> one = operands;
        for (std::size_t i = 0; i < count; ++i) {
          if (alone == 0 || alone == i + 1) one[i] = squeeze(slice(operands[i], 0, k, k + 1), 0);
        }
        const std::vector<LazyTensor> looped = call(one);
        ASSERT_EQ(mapped.size(), looped.size());
        for (std::size_t r = 0; r < looped.size(); ++r) {
          const std::vector<double> expected = numbers(looped[r]);
          const std::vector<double> actual = numbers(squeeze(slice(mapped[r], 0, k, k + 1), 0));
          ASSERT_EQ(actual.size(), expected.size());
          for (std::size_t i = 0; i < expected.size(); ++i) {
            if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
            if (expected[i] == actual[i]) continue;  // infinities
            ASSERT_LE(std::abs(actual[i] - expected[i]), 1e-12 * (1 + std::abs(expected[i])))
                << "element " << i;
          }
        }
      }
    }
  }
}

TEST_P(OfOperation, NumbersStandBesideTensorsOfAnotherDeviceThanTheDefault) {
  const Device device{DeviceKind::vulkan, 0};
  CALDERA_REQUIRE_DEVICE(device);
  const DType type = operation().types.contains(DType::f32) ? DType::f32 : call_types(operation())[0];
  std::set<std::size_t> compared;
  for (const Sample& sample : samples()) {
    if (sample.operands.size() < 2) continue;
    const std::vector<LazyTensor> tensors = operands_of(sample, type, Layout::plain, device);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const DType own = sample.operands[i].dtype.value_or(type);
      if (own == DType::boolean) continue;  // C++ numbers are not
      SCOPED_TRACE(sample.to_string() + ", operand " + std::to_string(i));
      const catalogue::Operand single{{}, sample.operands[i].range, sample.operands[i].dtype, {}};
      double value = catalogue::values_of(single, i, type)[0];
      if (!sample.operands[i].values.empty()) value = sample.operands[i].values[0];
      std::vector<LazyTensor> operands = tensors;
      operands[i] = upload(Host(Shape{}, {value}), own, device);
      std::vector<LazyTensor> expected;
      try {
        expected = operation().call(operands, sample.arguments);
      } catch (const Error&) {
        continue;  // a tensor without axes does not fit there either
      }
      operands[i] = is_floating(own) ? LazyTensor(value) : LazyTensor(static_cast<std::int64_t>(value));
      try {
        const std::vector<LazyTensor> results = operation().call(operands, sample.arguments);
        ASSERT_EQ(results.size(), expected.size());
        for (std::size_t k = 0; k < results.size(); ++k) {
          ASSERT_EQ(results[k].shape(), expected[k].shape());
          ASSERT_EQ(results[k].device(), device);
          if (compared.contains(i)) continue;  // one call of each tells its value
          const std::vector<double> a = numbers(expected[k]), b = numbers(results[k]);
          for (std::size_t e = 0; e < a.size(); ++e) {
            if ((std::isnan(a[e]) && std::isnan(b[e])) || a[e] == b[e]) continue;
            ASSERT_NEAR(a[e], b[e], 1e-5 * (1 + std::abs(a[e]))) << "element " << e;
          }
        }
        compared.insert(i);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

CALDERA_FOR_EVERY_OPERATION(OfOperation);
CALDERA_FOR_EVERY_OPERATION_AND_DEVICE(OnDevice);

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What the parentheses of the pattern match in a text.
std::set<std::string> found(const std::string& text, const std::string& pattern) {
  const std::regex matched(pattern);
  std::set<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), matched), end; at != end; ++at) out.insert((*at)[1]);
  return out;
}

/// The functions that a public header declares; those in namespace caldera::ops are for operations, not for
/// users.
std::set<std::string> declared(const std::string& header) {
  std::string text = text_of(header);
  const std::string begin = "namespace caldera::ops {", end = "}  // namespace caldera::ops";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin))
    text.erase(at, text.find(end, at) + end.size() - at);
  return found(text,
               R"re(\n(?:LazyTensor|ComplexTensor|std::vector<LazyTensor>|[A-Z]\w*Result|TopK) (\w+)\()re");
}

TEST(Table, HasAnEntryForEveryPublicOperation) {
  std::set<std::string> functions;
  for (const std::string& header : found(text_of("ops/ops.h"), R"re(#include "(ops/[\w/]+\.h)")re"))
    functions.merge(declared(header));
  ASSERT_GT(functions.size(), 250u);
  for (const std::string& function : functions) {
    EXPECT_NE(catalogue::find_operation(function), nullptr)
        << function << " has no entry in the catalogue of operations";
  }
}

TEST(Table, EntriesAreCompleteAndUnique) {
  std::set<std::string_view> seen;
  for (const Operation* operation : catalogue::operations()) {
    SCOPED_TRACE(operation->name);
    EXPECT_TRUE(seen.insert(operation->name).second);
    EXPECT_FALSE(operation->summary.empty());
    EXPECT_NE(operation->signature.find(operation->name), std::string_view::npos);
    EXPECT_FALSE(operation->samples(*operation).empty());
    // What claims to have no gradient is not checked for one, so it must be plain that it has none. (Whether
    // a probability is exceeded is drawn.)
    const bool no_slope = operation->gradient == catalogue::Gradient::none;
    if (no_slope && operation->types.contains(DType::f64) && operation->name != "random_bernoulli") {
      EXPECT_FALSE(is_floating(catalogue::result_type(operation->result, DType::f64, {})));
    }
  }
}

/// An argument of a signature that has a default: "axis=-1".
struct Defaulted {
  std::string name, value;
};
/// Those of "f(x, axis=-1, {groups=1, stride})": what is in braces has a default whether it is written or
/// not.
std::vector<Defaulted> defaulted_arguments(std::string_view signature) {
  std::vector<Defaulted> out;
  std::string item;
  int braces = 0;
  const auto finish = [&](bool optional) {
    const std::size_t begin = item.find_first_not_of(' ');
    const std::string text = begin == std::string::npos ? "" : item.substr(begin);
    const std::size_t sign = text.find('=');
    if (sign != std::string::npos)
      out.push_back({text.substr(0, sign), text.substr(sign + 1)});
    else if (optional && !text.empty() && text.find("...") == std::string::npos)
      out.push_back({text, ""});
    item.clear();
  };
  for (std::size_t i = signature.find('(') + 1; i < signature.size(); ++i) {
    const char c = signature[i];
    if (c == ',' || c == ')' || c == '}') finish(braces > 0);
    braces += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ')') break;
    if (c != ',' && c != '{' && c != '}') item += c;
  }
  return out;
}

/// Whether an argument, as Arguments writes it, is the default as signatures write it.
bool is_default(const std::string& written, const std::string& by_default) {
  if (by_default == "true" || by_default == "false") return (written == "True") == (by_default == "true");
  char* end = nullptr;
  const double number = std::strtod(by_default.c_str(), &end);
  if (end != by_default.c_str() && *end == '\0') return std::strtod(written.c_str(), nullptr) == number;
  return written == by_default || written == "'" + by_default + "'";
}

/// A tensor that calls may have or lack: some samples have more operands than others.
bool varies_in_operands(const Operation& operation) {
  std::set<std::size_t> counts;
  for (const Sample& sample : operation.samples(operation)) counts.insert(sample.operands.size());
  return counts.size() > 1;
}

TEST(Table, EverySignatureArgumentIsTried) {
  for (const Operation* operation : catalogue::operations()) {
    for (const auto& [name, by_default] : defaulted_arguments(operation->signature)) {
      const std::vector<Sample> all = operation->samples(*operation);
      const bool tried =
          std::any_of(all.begin(), all.end(), [&, &name = name, &value = by_default](const Sample& sample) {
            const auto& given = sample.arguments.values();
            return std::any_of(given.begin(), given.end(), [&](const auto& argument) {
              if (argument.first != name) return false;
              const std::string text = catalogue::Arguments{{argument.first, argument.second}}.to_string();
              return !is_default(text.substr(name.size() + 1), value);
            });
          });
      const bool operand = by_default.empty() || by_default == "none";
      EXPECT_TRUE(tried || (operand && varies_in_operands(*operation)))
          << operation->signature << ": no sample gives " << name << " a value that is not its default";
    }
  }
}

TEST(Samples, AreTheSameEverywhereAndHeldByTheirType) {
  for (const Operation* operation : catalogue::operations()) {
    for (const DType type : call_types(*operation)) {
      for (const Sample& sample : operation->samples(*operation)) {
        const std::vector<Host> values = operand_values(sample, type);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const DType held = sample.operands[i].dtype.value_or(type);
          ASSERT_EQ(values[i].values.size(), static_cast<std::size_t>(sample.operands[i].shape.numel()));
          for (const double value : values[i].values)
            ASSERT_EQ(value, stored(value, held)) << operation->name;
        }
      }
    }
  }
  // What the golden files were made of.
  const std::vector<double> values = catalogue::values_of({.shape = {3}}, 0, DType::f32);
  EXPECT_EQ(values, (std::vector<double>{0.328125, -0.03125, 1.921875}));
}

}  // namespace
}  // namespace caldera::testing
