#include "lm/adapters/lora_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/ops.h"

namespace caldera {
namespace {

LazyTensor initial_a(const Projection& base, const LoRAOptions& options, std::uint64_t seed, Device device) {
  const Shape shape{options.rank, base.in_features()};
  if (options.init == LoRAInit::gaussian)
    return random_normal(shape, seed, DType::f32, device) * (1.0 / options.rank);
  // kaiming_uniform with a = sqrt(5): the bound sqrt(6 / ((1 + a^2) fan_in)) is 1 / sqrt(fan_in).
  return uniform_init(shape, 1 / std::sqrt(static_cast<double>(base.in_features())), seed, device);
}

LazyTensor f32_of(const LazyTensor& x) { return astype(x, DType::f32); }

/// What the base gives for zeros: its bias.
LazyTensor at_zero(Projection& base, Device device) {
  return squeeze(f32_of(base.forward(LazyTensor::zeros(Shape{1, base.in_features()}, DType::f32, device))),
                 0);
}

/// Rows `begin` to `end` of the transposed weight, whatever the base keeps it as.
LazyTensor weight_columns(Projection& base, std::int64_t begin, std::int64_t end, const LazyTensor& bias) {
  const LazyTensor unit =
      astype(eye(end - begin, base.in_features(), begin, DType::f32, bias.device()), DType::f32);
  return f32_of(base.forward(unit)) - bias;
}

}  // namespace

void check_lora_rank(const std::string& name, const Projection& base, int rank) {
  const std::int64_t limit = std::min(base.in_features(), base.out_features());
  if (rank > limit)
    throw ValueError(
        fmt::format("LoRA rank {} is above min(in, out) = {} of {} (in {}, out {}); use a rank of at "
                    "most {}",
                    rank, limit, name, base.in_features(), base.out_features(), limit));
}

LoRALinear::LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, std::uint64_t seed,
                       const std::string& name)
    : base_(std::move(base)), options_(options), dropout_(options.dropout, seed) {
  options_.validate();
  check_lora_rank(name, *base_, options_.rank);
  const Device device = base_->device();
  a_.tensor = initial_a(*base_, options_, seed, device);
  b_.tensor = LazyTensor::zeros(Shape{base_->out_features(), options_.rank}, DType::f32, device);
  if (options_.init == LoRAInit::pissa) begin_as_largest_part();
  if (options_.use_dora) begin_magnitude();
}

LoRALinear::LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, LazyTensor a,
                       LazyTensor b)
    : base_(std::move(base)),
      options_(options),
      a_{std::move(a)},
      b_{std::move(b)},
      dropout_(options.dropout) {
  options_.validate();
  check_lora_rank("LoRALinear", *base_, options_.rank);
  if (lora_a().shape() != Shape{options_.rank, in_features()} ||
      lora_b().shape() != Shape{out_features(), options_.rank})
    throw ShapeError(fmt::format("LoRALinear: A {} and B {} do not fit rank {}, in {}, out {}",
                                 lora_a().shape().to_string(), lora_b().shape().to_string(), options_.rank,
                                 in_features(), out_features()));
  if (options_.use_dora) begin_magnitude();
}

void LoRALinear::begin_as_largest_part() {
  const LazyTensor bias = at_zero(*base_, a_.device());
  const SvdResult parts = svd(weight_columns(*base_, 0, in_features(), bias), false);  // of W^T = u s vh
  const std::int64_t rank = options_.rank;
  const LazyTensor root = sqrt(slice(parts.s, 0, 0, rank) * (1 / options_.scaling()));
  const LazyTensor a = transpose(slice(parts.u, 1, 0, rank) * root);
  const LazyTensor b = transpose(slice(parts.vh, 0, 0, rank)) * root;
  // With a way back to the decomposition they would hold it until the first step, as large as the weight. And
  // what they begin as has memory of its own from the start: copied when the first step replaces A and B, it
  // would hold the memory that the new ones take.
  a_.tensor = stop_gradient(a);
  b_.tensor = stop_gradient(b);
  first_a_ = stop_gradient(a);
  first_b_ = stop_gradient(b);
  std::array<LazyTensor, 4> all{a_.tensor, b_.tensor, first_a_, first_b_};
  eval(all);
}

void LoRALinear::begin_magnitude() {
  constexpr std::int64_t kAtATime = 512;  // features: the weight is never there as a whole
  base_at_zero_ = at_zero(*base_, a_.device());
  base_at_zero_.eval();
  base_squares_ = LazyTensor::zeros(Shape{out_features()}, DType::f32, a_.device());
  for (std::int64_t begin = 0; begin < in_features(); begin += kAtATime) {
    const std::int64_t end = std::min(begin + kAtATime, in_features());
    const LazyTensor part = weight_columns(*base_, begin, end, base_at_zero_);
    base_squares_ = base_squares_ + sum(part * part, 0);
    base_squares_.eval();
  }
  magnitude_.tensor = row_lengths();
  magnitude_.tensor.eval();
}

LazyTensor LoRALinear::delta(const LazyTensor& x) const {
  const auto through = [&](const LazyTensor& a, const LazyTensor& b) {
    return lora_delta(x, transpose(cast_like(a, x)), transpose(cast_like(b, x)), options_.scaling());
  };
  const LazyTensor trained = through(a_.tensor, b_.tensor);
  return first_a_.defined() ? trained - through(first_a_, first_b_) : trained;
}

LazyTensor LoRALinear::row_lengths() const {
  // |w + s b A|^2 = |w|^2 + 2 s b (A w) + s^2 b (A A^T) b for a row w of W and b of B: no matrix as large as
  // W.
  const Published p = published();
  const double s = p.options.scaling();
  const LazyTensor a = stop_gradient(f32_of(p.a)), b = stop_gradient(f32_of(p.b));
  const LazyTensor aw = f32_of(base_->forward(a)) - base_at_zero_;  // (rank, out)
  const LazyTensor squares = base_squares_ + sum(b * transpose(aw), 1) * (2 * s) +
                             sum(matmul(b, matmul(a, transpose(a))) * b, 1) * (s * s);
  return stop_gradient(sqrt(maximum(squares, 1e-30)));
}

LazyTensor LoRALinear::dora(const LazyTensor& x) {
  const LazyTensor scale = cast_like(magnitude_.tensor / row_lengths(), x);
  const LazyTensor dropped = dropout_.forward(x);
  const LazyTensor y = base_->forward(x);
  const bool drops = is_training() && options_.dropout > 0;
  const LazyTensor linear = (drops ? base_->forward(dropped) : y) - cast_like(base_at_zero_, x);
  return y + (scale - 1.0) * linear + scale * delta(dropped);
}

LazyTensor LoRALinear::forward(const LazyTensor& x) {
  if (!enabled_) return base_->forward(x);
  if (options_.use_dora) return dora(x);
  return base_->forward(x) + delta(dropout_.forward(x));
}

LoRALinear::Published LoRALinear::published() const {
  Published p{.options = options_, .a = a_.tensor, .b = b_.tensor};
  if (!first_a_.defined()) return p;
  p.options.init = LoRAInit::kaiming;
  p.options.rank = 2 * options_.rank;
  p.options.alpha = options_.alpha * (options_.use_rslora ? std::sqrt(2.0) : 2.0);
  p.a = concatenate({a_.tensor, first_a_}, 0);
  p.b = concatenate({b_.tensor, -first_b_}, 1);
  return p;
}

std::optional<LazyTensor> LoRALinear::matrix() {
  std::optional<LazyTensor> base = base_->matrix();
  if (!base || !enabled_) return base;
  if (is_training() && options_.dropout > 0) return std::nullopt;
  return f32_of(*base) + weight_change();
}

LazyTensor LoRALinear::weight_change() {
  const Published p = published();
  LazyTensor change = matmul(f32_of(p.b), f32_of(p.a)) * p.options.scaling();
  if (!options_.use_dora) return change;
  const LazyTensor weight = transpose(weight_columns(*base_, 0, in_features(), base_at_zero_));
  return expand_dims(magnitude_.tensor / row_lengths(), 1) * (weight + change) - weight;
}

void LoRALinear::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(prefix, *base_);
  visitor.parameter(join_name(prefix, "lora_A.weight"), a_);
  visitor.parameter(join_name(prefix, "lora_B.weight"), b_);
  if (options_.use_dora) visitor.parameter(join_name(prefix, "lora_magnitude_vector"), magnitude_);
  visitor.module(join_name(prefix, "lora_dropout"), dropout_);
}

}  // namespace caldera
