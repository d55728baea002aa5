// The suite "graph": what it takes to plan a graph for the first time, for graphs of many forms, from the
// built graph to the plan, nothing computed (the time of a node is the row's time divided by its operations);
// and what a call of a compiled function costs, on a device that computes nothing.
#include "engine/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "benches/suites/suites.h"
#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"

namespace caldera::bench {
namespace {

using Outputs = std::vector<LazyTensor>;

LazyTensor null_input(const Shape& shape) {
  return LazyTensor::zeros(shape, DType::f32, Device::null()).eval();
}

/// One operation after the other.
Outputs deep(int nodes) {
  const LazyTensor x = null_input({64, 64});
  LazyTensor y = x;
  for (int i = 0; i < nodes; ++i) y = i % 2 == 0 ? tanh(y) : y + x;
  return {y};
}
/// Many small graphs side by side.
Outputs wide(int nodes) {
  Outputs out;
  for (int i = 0; i < nodes / 5; ++i) {
    const LazyTensor x = null_input({32, 32});
    out.push_back(sum(exp(x) * x, -1));
  }
  return out;
}
/// Every value is read by several that follow it, some of them products.
Outputs branching(int nodes) {
  Outputs seen{null_input({32, 32}), null_input({32, 32})};
  for (std::size_t i = 0; static_cast<int>(seen.size()) < nodes; ++i) {
    const LazyTensor &a = seen[seen.size() - 1],
                     &b = seen[seen.size() - 2 - i % std::min<std::size_t>(i + 1, 7)];
    seen.push_back(i % 16 == 15 ? matmul(a, b) : i % 3 == 0 ? tanh(a * b) : a + b);
  }
  return {seen.back()};
}
/// The rows of a matrix one by one, their sum, and its gradient.
Outputs sliced(int nodes) {
  const int rows = nodes / 9;
  const LazyTensor x = null_input({rows, 16});
  LazyTensor total;
  for (int i = 0; i < rows; ++i) {
    const LazyTensor row = tanh(slice(x, 0, i, i + 1));
    total = total.defined() ? total + row : row;
  }
  const LazyTensor loss = sum(total);
  return {loss, grad(loss, x)};
}
/// A training step of low-rank adapters on the queries and values of `layers` layers of a transformer.
Outputs lora_layers(int layers) {
  constexpr std::int64_t kBatch = 2, kLength = 32, kWidth = 64, kHeads = 4, kRank = 8;
  Outputs adapters;
  const auto linear = [&](const LazyTensor& x, bool adapted) {
    LazyTensor y = matmul(x, transpose(null_input({kWidth, kWidth})));
    if (!adapted) return y;
    adapters.push_back(null_input({kWidth, kRank}));
    adapters.push_back(null_input({kRank, kWidth}));
    return y + lora_delta(x, adapters[adapters.size() - 2], adapters.back(), 2);
  };
  const auto heads = [&](const LazyTensor& x) {
    return permute_dims(reshape(x, {kBatch, kLength, kHeads, kWidth / kHeads}), {0, 2, 1, 3});
  };
  LazyTensor h = null_input({kBatch, kLength, kWidth});
  for (int layer = 0; layer < layers; ++layer) {
    const LazyTensor n = rms_norm(h, 1e-5, null_input({kWidth}));
    const LazyTensor a = scaled_dot_product_attention(heads(linear(n, true)), heads(linear(n, false)),
                                                      heads(linear(n, true)), {.is_causal = true});
    h = h + linear(reshape(permute_dims(a, {0, 2, 1, 3}), {kBatch, kLength, kWidth}), false);
    const LazyTensor m = rms_norm(h, 1e-5, null_input({kWidth}));
    h = h + linear(silu(linear(m, false)) * linear(m, false), false);
  }
  const LazyTensor loss = mean(square(h));
  Outputs out = grad(loss, adapters);
  for (std::size_t i = 0; i < adapters.size(); ++i) out[i] = adapters[i] - 1e-3 * out[i];
  out.push_back(loss);
  return out;
}

Case plan_case(const std::string& what, const std::function<Outputs(int)>& make, int size, int nodes,
               double bound_us) {
  Case c;
  c.name = fmt::format("graph/plan/{}/{}", what, size);
  c.shape = "first plan";
  c.bound_us = bound_us;
  c.operations = nodes;
  c.make = [=](Device) {
    auto outputs = std::make_shared<Outputs>();
    Work work;
    work.before = [=] {
      clear_plan_cache();
      if (outputs->empty()) *outputs = make(size);
    };
    work.run = [=] { (void)plan_for(*outputs); };
    return work;
  };
  return c;
}

/// What a call of a compiled function costs the host, beyond the device's work: so much a call, an argument
/// and a result, and nothing an operation. In microseconds.
constexpr double kCall = 1.5, kArgument = 0.06, kResult = 0.25;

Case compiled_case(const std::string& what, int size, double bound_us,
                   const std::function<std::function<void()>()>& make) {
  Case c;
  c.name = fmt::format("graph/compiled/{}/{}", what, size);
  c.shape = "a call";
  c.bound_us = bound_us;
  c.make = [=](Device) {
    Work work;
    work.run = make();
    return work;
  };
  return c;
}

/// The sum of many arguments.
Case compiled_arguments(int count) {
  return compiled_case("arguments", count, kCall + kArgument * count + kResult, [=] {
    Outputs arguments;
    for (int i = 0; i < count; ++i) arguments.push_back(null_input({16}));
    const TensorFunction f = compiled(TensorFunction([](std::span<const LazyTensor> a) {
      LazyTensor total = a[0] * 2.0;
      for (const LazyTensor& x : a) total = total + x;
      return total;
    }));
    return [=] { (void)f(arguments); };
  });
}

/// One operation after the other: as `seeds/graph`, but nothing is built.
Case compiled_chain(int length) {
  return compiled_case("chain", length, kCall + kArgument * 2 + kResult, [=] {
    const Outputs arguments{null_input({16}), null_input({16})};
    const TensorFunction f = compiled(TensorFunction([=](std::span<const LazyTensor> a) {
      LazyTensor total = a[0];
      for (int i = 0; i < length; ++i) total = total + a[1];
      return total;
    }));
    return [=] { (void)f(arguments); };
  });
}

/// A step that replaces every tensor of a state by one that comes from all of them, as training does.
Case compiled_state(int count, bool donates) {
  const double bound = kCall + (kArgument + kResult) * count;
  return compiled_case(donates ? "donated_state" : "state", count, bound, [=] {
    auto state = std::make_shared<Outputs>();
    CompiledOptions options;
    for (int i = 0; i < count; ++i) {
      state->push_back(null_input({16}));
      if (donates) options.donate.push_back(static_cast<std::size_t>(i));
    }
    const VectorFunction f = compiled(VectorFunction([](std::span<const LazyTensor> a) {
                                        LazyTensor loss = a[0];
                                        for (const LazyTensor& x : a.subspan(1)) loss = loss + x;
                                        Outputs next;
                                        for (const LazyTensor& x : a) next.push_back(x * 0.5 + loss);
                                        return next;
                                      }),
                                      options);
    return [=] { *state = f(*state); };
  });
}

}  // namespace

std::vector<Case> graph_suite() {
  std::vector<Case> cases;
  using Make = Outputs (*)(int);
  constexpr std::pair<const char*, Make> kForms[] = {
      {"deep", deep}, {"wide", wide}, {"branching", branching}, {"sliced", sliced}};
  constexpr std::pair<int, double> kSizes[] = {{1000, 1500}, {10'000, 12'000}, {100'000, 130'000}};
  for (const auto& [what, make] : kForms) {
    for (const auto& [size, bound] : kSizes) cases.push_back(plan_case(what, make, size, size, bound));
  }
  constexpr int kLayers = 100;
  cases.push_back(plan_case("lora_layers", lora_layers, kLayers,
                            static_cast<int>(Graph(lora_layers(kLayers)).node_count()), 0));
  for (const int count : {1, 10, 100}) cases.push_back(compiled_arguments(count));
  cases.push_back(compiled_chain(1000));
  for (const bool donates : {false, true}) cases.push_back(compiled_state(100, donates));
  return cases;
}

}  // namespace caldera::bench
