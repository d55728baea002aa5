#include "ops/loss/ctc.h"

#include <fmt/core.h>

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/index/scatter.h"
#include "ops/loss/loss_operands.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b) + exp(c)), with gradients that are finite where all are -infinity.
LazyTensor log_sum(const LazyTensor& a, const LazyTensor& b, const LazyTensor& c) {
  const LazyTensor most = stop_gradient(maximum(maximum(a, b), c)), never = equal(most, kNever);
  const LazyTensor base = where(never, 0.0, most);
  const LazyTensor total = exp(a - base) + exp(b - base) + exp(c - base);
  return where(never, kNever, log(where(never, 1.0, total)) + base);
}

void check_lengths(const LazyTensor& lengths, const char* what, std::int64_t examples) {
  ops::check_index_type("ctc_loss", lengths);
  if (lengths.shape() != Shape{examples})
    throw ShapeError(fmt::format("ctc_loss: {} {} are not one for each of {} examples", what,
                                 lengths.shape().to_string(), examples));
}

}  // namespace

LazyTensor ctc_loss(const LazyTensor& log_probs, const LazyTensor& targets, const LazyTensor& input_lengths,
                    const LazyTensor& target_lengths, const CtcOptions& options) {
  const char* const op = "ctc_loss";
  ops::check_domain(op, ScalarDomain::floating, log_probs.dtype());
  ops::check_index_type(op, targets);
  if (log_probs.rank() != 3 || targets.rank() != 2 || targets.shape(0) != log_probs.shape(1) ||
      log_probs.shape(0) == 0)
    throw ShapeError(
        fmt::format("{}: log_probs {} and targets {}; want (times, examples, classes) and (examples, "
                    "targets)",
                    op, log_probs.shape().to_string(), targets.shape().to_string()));
  const std::int64_t times = log_probs.shape(0), examples = log_probs.shape(1), classes = log_probs.shape(2),
                     longest = targets.shape(1), states = 2 * longest + 1;
  check_lengths(input_lengths, "input_lengths", examples);
  check_lengths(target_lengths, "target_lengths", examples);
  if (options.blank < 0 || options.blank >= classes)
    throw ValueError(fmt::format("{}: blank is {} of {} classes", op, options.blank, classes));
  const Device device = log_probs.device();
  const auto blank = static_cast<int>(options.blank);
  const LazyTensor labels = ops::narrow_indices(op, targets, classes, device),
                   inputs = astype(input_lengths, DType::i32), lengths = astype(target_lengths, DType::i32);

  // A blank between all targets: blank, t0, blank, t1, ... blank.
  const LazyTensor blanks = full(Shape{examples, longest}, blank, DType::i32, device);
  const LazyTensor classes_of =
      concatenate({reshape(stack({blanks, labels}, 2), Shape{examples, 2 * longest}),
                   full(Shape{examples, 1}, blank, DType::i32, device)},
                  1);
  const LazyTensor emitted =
      take_along_axis(astype(log_probs, compute_type(log_probs.dtype())),
                      broadcast_to(expand_dims(classes_of, 0), Shape{1, examples, states}), 2);
  const DType type = emitted.dtype();
  // A target is reached from the one before it, without the blank, if it is another.
  const LazyTensor state = iota(Shape{1, states}, 1, DType::i32, device);
  LazyTensor skips = zeros(Shape{examples, states}, DType::boolean, device);
  if (longest > 1) {
    const LazyTensor other = not_equal(slice(classes_of, 1, 2, states), slice(classes_of, 1, 0, states - 2));
    skips = logical_and(pad(other, {0, 2}, {0, 0}, 0), equal(remainder(state, 2), 1));
  }
  const LazyTensor begins = broadcast_to(state <= 1, Shape{examples, states});
  const auto at = [&](std::int64_t t) { return squeeze(slice(emitted, 0, t, t + 1), 0); };
  LazyTensor alpha = where(begins, at(0), full(Shape{examples, states}, kNever, type, device));
  const auto moved = [&](std::int64_t by) {
    return states > by ? pad(slice(alpha, 1, 0, states - by), {0, by}, {0, 0}, kNever)
                       : full(Shape{examples, states}, kNever, type, device);
  };
  for (std::int64_t t = 1; t < times; ++t) {
    const LazyTensor next = log_sum(alpha, moved(1), where(skips, moved(2), kNever)) + at(t);
    alpha = where(expand_dims(inputs, 1) > static_cast<int>(t), next, alpha);
  }
  // It ends in the last target or the blank behind it.
  const LazyTensor last = expand_dims(lengths, 1) * 2;
  const LazyTensor in_blank = squeeze(take_along_axis(alpha, last, 1), 1);
  const LazyTensor in_target =
      where(lengths > 0, squeeze(take_along_axis(alpha, maximum(last - 1, 0), 1), 1), kNever);
  LazyTensor losses = -log_sum(in_blank, in_target, full(Shape{examples}, kNever, type, device));
  // Without any time nothing but the empty sequence is there.
  losses = where(inputs > 0, losses, where(lengths > 0, -kNever, 0.0));
  if (options.zero_infinity) losses = where(equal(losses, -kNever), 0.0, losses);
  if (options.reduction == Reduction::mean) losses = losses / astype(maximum(lengths, 1), type);
  return astype(ops::reduced(losses, options.reduction), log_probs.dtype());
}

}  // namespace caldera
