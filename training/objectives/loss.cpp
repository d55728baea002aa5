#include "training/objectives/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/barrier.h"
#include "engine/autodiff/checkpoint/checkpoint.h"
#include "engine/autodiff/custom_vjp.h"
#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/loss/cross_entropy.h"
#include "ops/nn/softmax.h"
#include "ops/shape/joining.h"
#include "training/objectives/online_log_probabilities.h"

namespace caldera {
namespace {

void check_weights(const char* op, const LazyTensor& weights, const LazyTensor& targets) {
  if (weights.defined() && weights.shape() != targets.shape())
    throw ShapeError(
        fmt::format("{}: weights {} do not have the shape of the targets {}; give one weight for each target",
                    op, weights.shape().to_string(), targets.shape().to_string()));
}

CrossEntropyTerms weighted_terms(const LazyTensor& logits, const LazyTensor& targets,
                                 const LazyTensor& weights, const CrossEntropyOptions& options) {
  CrossEntropyTerms terms = cross_entropy_terms(logits, targets, options);
  if (!weights.defined()) return terms;
  check_weights("cross_entropy", weights, targets);
  const LazyTensor own =
      weights.dtype() == terms.losses.dtype() ? weights : astype(weights, terms.losses.dtype());
  // Selected and not only multiplied: a position of weight 0 may hold NaN.
  terms.losses = where(equal(own, 0.0), zeros_like(terms.losses), terms.losses * own);
  // Else the terms' weights are all ones: nothing to multiply by.
  const bool weighted = options.ignore_index || options.weight.defined();
  terms.weights = weighted ? terms.weights * own : own;
  return terms;
}

// The rows of hidden states and of what belongs to them, in parts of nearly one length.
class RowParts {
 public:
  RowParts(const char* op, const LazyTensor& hidden, const LazyTensor& targets, std::int64_t classes,
           std::int64_t at_most)
      : rows_(targets.shape().numel()) {
    const Shape& shape = hidden.shape();
    if (shape.rank() != targets.rank() + 1 ||
        !std::ranges::equal(shape.span().first(static_cast<std::size_t>(targets.rank())),
                            targets.shape().span()))
      throw ShapeError(
          fmt::format("{}: hidden states {} do not fit the targets {}; give hidden states "
                      "the shape of the targets and one more axis, the features that the head reads",
                      op, shape.to_string(), targets.shape().to_string()));
    const std::int64_t at_a_time = at_most > 0 ? at_most : rows_at_a_time(classes, hidden.shape(-1));
    count_ = std::max<std::int64_t>(1, (rows_ + at_a_time - 1) / at_a_time);
    hidden_ = reshape(hidden, Shape{rows_, hidden.shape(-1)});
  }

  /// In as many parts.
  RowParts(const char* op, const LazyTensor& hidden, const LazyTensor& targets, std::int64_t parts)
      : RowParts(op, hidden, targets, 1, std::max<std::int64_t>(1, targets.shape().numel())) {
    count_ = parts;
  }

  std::int64_t count() const { return count_; }
  LazyTensor hidden(std::int64_t i) const { return part(hidden_, i); }
  /// The part of a tensor of the targets' shape.
  LazyTensor of(const LazyTensor& x, std::int64_t i) const {
    return part(x.rank() == 1 ? x : reshape(x, Shape{rows_}), i);
  }

 private:
  LazyTensor part(const LazyTensor& x, std::int64_t i) const {
    return count_ == 1 ? x : slice(x, 0, rows_ * i / count_, rows_ * (i + 1) / count_);
  }

  std::int64_t rows_;
  std::int64_t count_ = 1;
  LazyTensor hidden_;
};

LazyTensor wide_logits(const Head& head, const LazyTensor& rows) {
  const LazyTensor logits = head(rows);
  return is_16bit_float(logits.dtype()) ? astype(logits, DType::f32) : logits;
}

// Blocks of logits of 4 MiB, which stay in a processor's caches from one product to the next.
constexpr std::int64_t kBlockRows = 512;
constexpr std::int64_t kBlockClasses = 2048;

/// A function of rows: a number a row, and its derivative with respect to the row.
using ValueAndSlope = std::function<std::pair<LazyTensor, LazyTensor>(const LazyTensor& rows)>;

/// The value, with the slope as its derivative. The slope waits for nothing, so that what it is made of need
/// not be kept until it is known what the values are for. It is not differentiated again: GradientError.
LazyTensor with_slope(const ValueAndSlope& function, const LazyTensor& x) {
  const auto refuse = [](std::span<const LazyTensor>, const LazyTensor&,
                         const LazyTensor&) -> std::vector<LazyTensor> {
    throw GradientError(
        "log_probabilities_of_head: the gradient of a head that is not trained cannot be differentiated "
        "again; say that it is trained");
  };
  CustomVjp rule{.name = "log_probabilities_of_head", .forward = {}, .backward = {}};
  rule.forward = [function](std::span<const LazyTensor> in) {
    auto [value, slope] = function(in[0]);
    return std::vector<LazyTensor>{value, slope};
  };
  rule.backward = [refuse](std::span<const LazyTensor>, std::span<const LazyTensor> results,
                           std::span<const LazyTensor> along) -> std::vector<LazyTensor> {
    const auto once = custom_vjp([](std::span<const LazyTensor> in) { return behind_barrier(in[0], {}); },
                                 refuse, "log_probabilities_of_head");
    return {once({&results[1], 1}) * expand_dims(along[0], -1)};
  };
  return custom_vjp(std::move(rule))({&x, 1})[0];
}

}  // namespace

CrossEntropySum cross_entropy_sum(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options) {
  const CrossEntropyTerms terms = weighted_terms(logits, targets, weights, options);
  return {sum(terms.losses), sum(terms.weights)};
}

std::int64_t rows_at_a_time(std::int64_t classes, std::int64_t features) {
  constexpr std::int64_t kBytes = std::int64_t{32} << 20;
  return std::max({std::int64_t{1}, kBytes / std::max<std::int64_t>(1, 4 * classes), features / 8});
}

CrossEntropySum head_cross_entropy_sum(const LazyTensor& hidden, std::int64_t classes, const Head& head,
                                       const LazyTensor& targets, const LazyTensor& weights,
                                       const CrossEntropyOptions& options, std::int64_t rows) {
  check_weights("head_cross_entropy_sum", weights, targets);
  const RowParts parts("head_cross_entropy_sum", hidden, targets, classes, rows);
  CrossEntropySum sums;
  for (std::int64_t i = 0; i < parts.count(); ++i) {
    const CrossEntropySum own =
        cross_entropy_sum(wide_logits(head, parts.hidden(i)), parts.of(targets, i),
                          weights.defined() ? parts.of(weights, i) : weights, options);
    sums = i == 0 ? own : CrossEntropySum{sums.loss + own.loss, sums.weight + own.weight};
  }
  return sums;
}

LazyTensor log_probabilities_of_head(const LazyTensor& hidden, std::int64_t classes, const Head& head,
                                     const LazyTensor& targets, const HeadTraits& traits) {
  const std::int64_t features = hidden.rank() == 0 ? 1 : hidden.shape(-1);
  const bool in_blocks = !traits.is_trained && traits.matrix &&
                         (traits.classes > 0 || targets.shape().numel() > rows_at_a_time(classes, features));
  const std::int64_t rows = traits.rows > 0 ? traits.rows : in_blocks ? kBlockRows : 0;
  const std::int64_t block = traits.classes > 0 ? traits.classes : kBlockClasses;
  const RowParts parts("log_probabilities_of_head", hidden, targets, classes, rows);
  std::vector<LazyTensor> results;
  for (std::int64_t i = 0; i < parts.count(); ++i) {
    const LazyTensor own = parts.of(targets, i), x = parts.hidden(i);
    const TensorFunction log_p = [head, own](std::span<const LazyTensor> in) {
      return -cross_entropy_terms(wide_logits(head, in[0]), own).losses;
    };
    if (parts.count() == 1 && !in_blocks) {
      results.push_back(log_p({&x, 1}));
    } else if (traits.is_trained) {
      results.push_back(checkpoint(log_p)({&x, 1}));
    } else if (in_blocks) {
      const detail::OnlineLogProbabilities online(*traits.matrix, own, block);
      results.push_back(with_slope([online](const LazyTensor& in) { return online.of(in); }, x));
    } else {
      results.push_back(with_slope(
          [log_p](const LazyTensor& in) {
            const LazyTensor value = log_p({&in, 1});
            return std::pair(value, grad(sum(value), in));
          },
          x));
    }
  }
  return reshape(results.size() == 1 ? results[0] : concatenate(results), targets.shape());
}

LazyTensor head_divergence_sum(const Headed& teacher, const Headed& student, std::int64_t classes,
                               double temperature, const LazyTensor& weights, std::int64_t rows) {
  const RowParts of_teacher("head_divergence_sum", teacher.hidden, weights, classes, rows);
  const RowParts of_student("head_divergence_sum", student.hidden, weights, classes, rows);
  const std::int64_t parts = std::max(of_teacher.count(), of_student.count());
  const RowParts p_rows("head_divergence_sum", teacher.hidden, weights, parts);
  const RowParts q_rows("head_divergence_sum", student.hidden, weights, parts);
  LazyTensor total;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto log_probabilities = [&](const Headed& model, const LazyTensor& hidden) {
      return log_softmax(wide_logits(model.head, hidden) / temperature, -1);
    };
    const LazyTensor p = log_probabilities(teacher, p_rows.hidden(i));
    const LazyTensor q = log_probabilities(student, q_rows.hidden(i));
    const LazyTensor weight = p_rows.of(weights, i), each = sum(exp(p) * (p - q), {-1});
    const LazyTensor own = sum(where(equal(weight, 0.0), zeros_like(each), each * weight));
    total = i == 0 ? own : total + own;
  }
  return total;
}

LazyTensor weighted_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options) {
  return weighted_terms(logits, targets, weights, options).mean();
}

}  // namespace caldera
