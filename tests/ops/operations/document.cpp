#include "tests/ops/operations/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/autodiff/vmap.h"
#include "engine/runtime/evaluate.h"
#include "tests/ops/accuracy.h"
#include "tests/support/operation_calls.h"

namespace caldera::testing {
namespace {

using catalogue::Operation;
using catalogue::Sample;

DType usual_type(const Operation& operation) {
  for (const DType type : {DType::f32, DType::i32}) {
    if (operation.types.contains(type)) return type;
  }
  return DType::boolean;
}

/// The sample that a column is tried on: the last one without anything empty.
Sample tried_sample(const Operation& operation) {
  const std::vector<Sample> samples = operation.samples(operation);
  for (std::size_t i = samples.size(); i-- > 0;) {
    const auto is_full = [](const auto& x) { return x.shape.numel() > 0; };
    if (!std::all_of(samples[i].operands.begin(), samples[i].operands.end(), is_full)) continue;
    const auto results = operation.call(
        operands_of(samples[i], usual_type(operation), Layout::plain, Device::cpu()), samples[i].arguments);
    if (std::all_of(results.begin(), results.end(), [](const LazyTensor& y) { return y.numel() > 0; }))
      return samples[i];
  }
  throw std::logic_error(fmt::format("{}: no sample gives anything", operation.name));
}

struct Tried {
  Sample sample;
  std::vector<LazyTensor> operands, results, variables;
};

Tried try_call(const Operation& operation, DType type) {
  Tried out{tried_sample(operation), {}, {}, {}};
  out.operands = operands_of(out.sample, type, Layout::plain, Device::cpu());
  out.results = operation.call(out.operands, out.sample.arguments);
  for (std::size_t i = 0; i < out.operands.size(); ++i) {
    if (out.sample.operands[i].varies() && is_floating(out.operands[i].dtype())) {
      out.variables.push_back(out.operands[i]);
    }
  }
  return out;
}

/// "yes", or what stands in the way.
template <class F>
std::string attempt(const F& function) {
  try {
    function();
    return "yes";
  } catch (const Error&) {
    return "**no**";
  }
}

bool differentiable(const Operation& operation) {
  return operation.gradient != catalogue::Gradient::none && operation.types.contains(DType::f64);
}

std::string vjp_cell(const Operation& operation) {
  if (!differentiable(operation)) return "-";
  const std::string found = attempt([&] {
    const Tried t = try_call(operation, DType::f64);
    const LazyTensor g = ones_like(t.results[0]);
    eval(vjp({t.results.data(), 1}, t.variables, {&g, 1}));
  });
  return found == "yes" && operation.gradient == catalogue::Gradient::zero ? "zero" : found;
}

std::string jvp_cell(const Operation& operation) {
  if (!differentiable(operation)) return "-";
  const std::string found = attempt([&] {
    const Tried t = try_call(operation, DType::f64);
    std::vector<LazyTensor> tangents;
    for (const LazyTensor& x : t.variables) tangents.push_back(ones_like(x));
    eval(jvp(t.results, t.variables, tangents));
  });
  return found == "yes" && operation.gradient == catalogue::Gradient::zero ? "zero" : found;
}

std::string vmap_cell(const Operation& operation) {
  if (tried_sample(operation).operands.empty()) return "-";
  return attempt([&] {
    const Tried t = try_call(operation, usual_type(operation));
    std::vector<LazyTensor> examples;
    for (const LazyTensor& x : t.operands) examples.push_back(stack({x, x}));
    const VectorFunction call = [&](std::span<const LazyTensor> x) {
      return operation.call(x, t.sample.arguments);
    };
    eval(vmap(call, 0, 0)(examples));
  });
}

std::string types_cell(const Operation& operation) {
  std::string out;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    if (operation.types.contains(type)) out += fmt::format("{}{}", out.empty() ? "" : ", ", name(type));
  }
  const auto is = [&](catalogue::Types types) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto type = static_cast<DType>(i);
      if (types.contains(type) != operation.types.contains(type)) return false;
    }
    return true;
  };
  if (is(catalogue::kAnyType)) return "any";
  if (is(catalogue::kNumeric)) return "numeric";
  if (is(catalogue::kFloating)) return "floating";
  if (is(catalogue::kIntegral)) return "integer";
  return out.empty() ? "-" : out;
}

std::string result_cell(const Operation& operation) {
  switch (operation.result) {
    case catalogue::ResultType::same:
      return "same";
    case catalogue::ResultType::boolean:
      return "bool";
    case catalogue::ResultType::index:
      return "int32";
    case catalogue::ResultType::floating:
      return "floating";
    case catalogue::ResultType::computed:
      return "float32 of 16-bit types";
    case catalogue::ResultType::summed:
      return "int32 of narrower ones";
    case catalogue::ResultType::argument:
      return "`dtype`";
  }
  return "";
}

class ScopedDefaultDevice {
 public:
  explicit ScopedDefaultDevice(Device device) : saved_(default_device()) { set_default_device(device); }
  ~ScopedDefaultDevice() { set_default_device(saved_); }
  ScopedDefaultDevice(const ScopedDefaultDevice&) = delete;
  ScopedDefaultDevice& operator=(const ScopedDefaultDevice&) = delete;

 private:
  Device saved_;
};

bool is_by_lapack(const Operation& operation) {
  const auto plan = plan_for(try_call(operation, usual_type(operation)).results);
  return plan != nullptr && std::any_of(plan->steps.begin(), plan->steps.end(),
                                        [](const Step& step) { return step.is<LinalgStep>(); });
}

/// Whether the call's results can be computed there, and whether that is by LAPACK after all.
std::string device_cell(const Operation& operation, Device device) {
  const std::string found = attempt([&] {
    const ScopedDefaultDevice scope(device);
    const Sample sample = tried_sample(operation);
    eval(operation.call(operands_of(sample, usual_type(operation), Layout::plain, device), sample.arguments));
  });
  const bool elsewhere = device.kind == DeviceKind::vulkan && is_by_lapack(operation);
  return found == "yes" && elsewhere ? "by the CPU" : found;
}

std::size_t kernels_of(std::span<const LazyTensor> results) {
  const auto plan = plan_for(results);
  return plan == nullptr ? 0 : plan->steps.size();
}

/// How many kernels the call alone becomes: 0 for what is read in place.
std::size_t kernels_alone(const Operation& operation) {
  return kernels_of(try_call(operation, usual_type(operation)).results);
}

/// An element-wise operation that leaves the type as it is.
LazyTensor neighbour(const LazyTensor& x) { return x.dtype() == DType::boolean ? logical_not(x) : x * 3; }

/// How many of an element-wise operation ahead of the call and one behind it are part of the call's kernels.
/// An operand that the sample gives a type (indices, conditions) is left alone.
std::string fused_cell(const Operation& operation) {
  Tried t = try_call(operation, usual_type(operation));
  bool ahead = false;
  for (std::size_t i = 0; i < t.operands.size(); ++i) {
    if (!t.sample.operands[i].varies()) continue;
    t.operands[i] = neighbour(t.operands[i]);
    ahead = true;
  }
  const std::size_t alone = std::max<std::size_t>(1, kernels_alone(operation));
  const auto is_fused = [&](std::span<const LazyTensor> results) { return kernels_of(results) <= alone; };
  std::vector<LazyTensor> behind;
  for (const LazyTensor& result : t.results) behind.push_back(neighbour(result));
  t.results.clear();  // what is held is computed for keeps
  const bool fuses_behind = is_fused(behind);
  if (!ahead) return fuses_behind ? "yes" : "no";
  const bool fuses_ahead = is_fused(operation.call(t.operands, t.sample.arguments));
  if (fuses_ahead && fuses_behind) return "yes";
  return fuses_behind ? "behind" : fuses_ahead ? "ahead" : "no";
}

/// Text within a table, where a bar would end the cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

/// The figures of tests/ops/accuracy.h, which are measured apart: a page does not depend on who makes it.
std::string accuracy_section() {
  std::string out =
      "\n## Accuracy\n\n"
      "The largest error of functions of float32 in units in the last place (ulp) of the exact result, "
      "against the C library in float64.\nHalf of the points are evenly spaced bit patterns of all of "
      "float32, half numbers from where the function bends. `test_ops` measures\nthem again, alone and "
      "within fused kernels, "
      "and fails above these figures. **CPU**: with AVX2; other instruction sets are held to\n2 ulp "
      "(`sigmoid`: 2.5) by `test_device`. **Vulkan**: on Mesa's lavapipe (22.3 to 26.2, which rounds an "
      "fma twice), where denormal numbers,\nalso as parts of a result, may count as 0. Results below "
      "**from**,\nwhere there is such a number, are measured in ulp of "
      "it.\n\n"
      "| function | points | CPU | Vulkan | Vulkan's own function must reach | from |\n"
      "|---|---|---|---|---|---|\n";
  for (std::size_t row = 0; row < kAccuracyFigures.size(); ++row) {
    const AccuracyFigure& figure = kAccuracyFigures.at(row);
    out +=
        fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", figure.function, accuracy_points(row), figure.cpu,
                    figure.vulkan, figure.required, figure.scale > 0 ? fmt::format("{}", figure.scale) : "-");
  }
  return out;
}

}  // namespace

std::string operations_page() {
  std::string out =
      "# Operations\n\n"
      "Made by `build/release/tests/caldera_operations > docs/guide/operations.md` from the catalogue of "
      "operations (`tests/catalogue/`)"
      " and by trying\neach one; a test holds this page to it. **types**: what the operands may be. **vjp**, "
      "**jvp**, **vmap**: whether reverse mode,\nforward mode and batching work: *zero* where the "
      "derivative is 0 by nature, - "
      "where there is none. **CPU**, **Vulkan**: whether its\nresults can be computed there (*by the CPU*: "
      "with LAPACK, for tensors of a GPU too). **kernels**: how many steps "
      "the call alone compiles to on the CPU. **fused**: whether an element-wise\noperation *ahead* of it "
      "and one *behind* it become part of its kernels; *yes* is both.\n";
  out += types_section();
  std::string_view family;
  for (const Operation* operation : catalogue::operations()) {
    if (operation->family != family) {
      family = operation->family;
      out += fmt::format(
          "\n## {}\n\n| operation | what it computes | types | result | vjp | jvp | vmap | CPU | Vulkan | "
          "fused | kernels |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|\n",
          family);
    }
    out += fmt::format(
        "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell(operation->signature),
        cell(operation->summary), types_cell(*operation), result_cell(*operation), vjp_cell(*operation),
        jvp_cell(*operation), vmap_cell(*operation), device_cell(*operation, Device::cpu()),
        device_cell(*operation, Device::vulkan(0)), fused_cell(*operation), kernels_alone(*operation));
  }
  return out + names_section() + accuracy_section();
}

}  // namespace caldera::testing
