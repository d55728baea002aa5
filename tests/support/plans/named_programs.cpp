#include "tests/support/plans/named_programs.h"

#include <cmath>
#include <stdexcept>

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

LazyTensor indices(std::vector<std::int32_t> values, Device device) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return LazyTensor::from_vector(values, shape, device);
}

/// One step of gradient descent on a two-layer network: values, gradients and updates in one plan.
Tensors training_step(Device d) {
  const LazyTensor x = program_input({6, 5}, d);
  const LazyTensor target = program_input({6, 3}, d, -0.5F);
  const Tensors weights{program_input({5, 8}, d, 0.1F), program_input({8}, d, -0.2F),
                        program_input({8, 3}, d, 0.3F)};
  const LazyTensor hidden = silu(matmul(x, weights[0]) + weights[1]);
  const LazyTensor loss = mean(square(matmul(hidden, weights[2]) - target));
  Tensors out{loss};
  const Tensors grads = grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) out.push_back(weights[i] - grads[i] * 0.01);
  return out;
}

Tensors causal_attention(Device d) {
  const LazyTensor q = program_input({2, 7, 4}, d);
  const LazyTensor k = program_input({2, 7, 4}, d, -0.3F);
  const LazyTensor v = program_input({2, 7, 4}, d, 0.7F);
  const Shape scores{7, 7};
  const LazyTensor seen = iota(scores, 0, DType::i32, d) >= iota(scores, 1, DType::i32, d);
  const LazyTensor masked = where(seen, matmul(q, transpose(k)) * 0.5, -1e9);
  return {matmul(softmax(masked), v)};
}

std::vector<NamedProgram> make_programs() {
  return {
      {"elementwise chain of 30",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({33, 7}, d);
         LazyTensor y = x;
         for (int i = 0; i < 15; ++i) y = tanh(y) * x;
         return {y};
       }},
      {"elementwise chain of 200",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({33, 7}, d);
         LazyTensor y = x;
         for (int i = 0; i < 100; ++i) y = tanh(y) * x;
         return {y};
       }},
      {"sum of 40 tensors",
       [](Device d) -> Tensors {
         LazyTensor y = program_input({65}, d);
         for (int i = 1; i < 40; ++i) y = y + program_input({65}, d, static_cast<float>(i));
         return {y};
       }},
      {"softmax",
       [](Device d) -> Tensors {
         return {softmax(program_input({33, 70}, d))};
       }},
      {"softmax along axis 0",
       [](Device d) -> Tensors {
         return {softmax(program_input({33, 70}, d), 0)};
       }},
      {"log_softmax",
       [](Device d) -> Tensors {
         return {log_softmax(program_input({33, 70}, d))};
       }},
      {"rms_norm",
       [](Device d) -> Tensors {
         return {rms_norm(program_input({33, 70}, d), 1e-5, program_input({70}, d, 1))};
       }},
      {"layer_norm",
       [](Device d) -> Tensors {
         return {
             layer_norm(program_input({33, 70}, d), 1e-5, program_input({70}, d, 1), program_input({70}, d))};
       }},
      {"matmul",
       [](Device d) -> Tensors {
         return {matmul(program_input({8, 9}, d), program_input({9, 5}, d))};
       }},
      {"matmul of transposed operands",
       [](Device d) -> Tensors {
         return {matmul(transpose(program_input({9, 8}, d)), transpose(program_input({5, 9}, d)))};
       }},
      {"matmul of slices",
       [](Device d) -> Tensors {
         return {
             matmul(slice(program_input({20, 9}, d), 0, 3, 11), slice(program_input({9, 9}, d), 1, 2, 9, 2))};
       }},
      {"batched matmul with a broadcast operand",
       [](Device d) -> Tensors {
         return {matmul(program_input({3, 1, 4, 5}, d), program_input({2, 5, 6}, d))};
       }},
      {"slice, permute and broadcast into one sum",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({8, 6, 4}, d);
         const LazyTensor y = permute_dims(slice(x, 0, 7, 1, -2), {2, 0, 1});  // (4, 3, 6)
         return {y + broadcast_to(program_input({6}, d), {4, 3, 6}) * program_input({4, 1, 1}, d)};
       }},
      {"reshape after permute",
       [](Device d) -> Tensors {
         return {exp(reshape(permute_dims(program_input({4, 5, 6}, d), {2, 0, 1}), {6, 20})),
                 reshape(permute_dims(program_input({4, 5, 6}, d), {2, 1, 0}), {30, 4}) * 2.0};
       }},
      {"reshape of a slice of whole rows",
       [](Device d) -> Tensors {
         return {exp(reshape(slice(program_input({9, 4, 5}, d), 0, 2, 8), {6, 20}))};
       }},
      {"pad",
       [](Device d) -> Tensors {
         return {pad(program_input({4, 5}, d), {1, 0}, {2, 3}, 0.5),
                 pad(program_input({6}, d), {1}, {0}, -1, {2})};
       }},
      {"concatenate",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({4, 5}, d);
         return {concatenate({exp(x), x, program_input({4, 2}, d)}, 1), stack({x, -x, x}, 1)};
       }},
      {"take",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({6, 5}, d);
         const LazyTensor i = indices({4, 0, 3, 3}, d);
         return {take(exp(x), i), take(transpose(x), i, 0), take(x, arange(3, DType::i32, d), 1)};
       }},
      {"scatter_add",
       [](Device d) -> Tensors {
         const LazyTensor base = program_input({6, 5}, d);
         const LazyTensor i = indices({4, 0, 4}, d);
         return {scatter_add(base, i, program_input({3, 5}, d)),
                 scatter_add(base, i, program_input({6, 3}, d), 1)};
       }},
      {"gradient of an embedding",
       [](Device d) -> Tensors {
         const LazyTensor table = program_input({7, 4}, d);
         const LazyTensor rows = take(table, indices({3, 1, 3, 6}, d));
         return {grad(sum(square(rows)), table)};
       }},
      {"causal attention", causal_attention},
      {"low-rank product",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({2, 5, 6}, d);
         return {matmul(x, program_input({6, 7}, d)) +
                 lora_delta(x, program_input({6, 2}, d), program_input({2, 7}, d), 0.5)};
       }},
      {"training step", training_step},
      {"dropout",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({9, 9}, d);
         return {where(random_uniform({9, 9}, 7, DType::f32, d) < 0.5, x * 2.0, 0.0)};
       }},
      {"reductions over several axes",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({3, 4, 5, 6}, d);
         return {sum(x, {0, 2}), max(exp(x), {1, 3}, true), mean(x),
                 min(permute_dims(x, {3, 1, 0, 2}), {0, 1})};
       }},
      {"outputs that share memory",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({4, 6}, d);
         const LazyTensor y = exp(x);
         return {y, transpose(y), slice(y, 0, 1, 3), y, transpose(x), x + y};
       }},
      {"outputs without inputs",
       [](Device d) -> Tensors {
         return {LazyTensor::full({3, 4}, 0.5, DType::f32, d), arange(5, DType::i32, d),
                 random_normal({7}, 3, DType::f32, d), LazyTensor::ones({}, DType::f32, d)};
       }},
      {"empty tensors",
       [](Device d) -> Tensors {
         const LazyTensor none = program_input({0, 4}, d);
         return {exp(none), sum(none, 0), matmul(transpose(none), none), concatenate({none, none}, 0)};
       }},
      {"common sub-expressions",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({9}, d);
         const LazyTensor y = program_input({9}, d);
         return {exp(x + y) * exp(x + y), sum(exp(x + y))};
       }},
      {"two independent branches",
       [](Device d) -> Tensors {
         const LazyTensor x = program_input({300}, d);
         const LazyTensor y = program_input({300}, d, 1);
         return {sum(exp(x)) * sum(exp(y))};
       }},
  };
}

}  // namespace

LazyTensor program_input(const Shape& shape, Device device, float first) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = first + 0.5F * std::sin(1.7F * static_cast<float>(i + 1));
  }
  return LazyTensor::from_vector(values, shape, device);
}

const std::vector<NamedProgram>& named_programs() {
  static const std::vector<NamedProgram> programs = make_programs();
  return programs;
}

const NamedProgram& named_program(std::string_view name) {
  for (const NamedProgram& program : named_programs()) {
    if (program.name == name) return program;
  }
  throw std::out_of_range("no program is named " + std::string(name));
}

}  // namespace caldera::testing
