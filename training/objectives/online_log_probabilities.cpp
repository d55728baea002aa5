#include "training/objectives/online_log_probabilities.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "lm/nn/precision.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/embedding.h"
#include "ops/reduce/extrema.h"

namespace caldera::detail {
namespace {

LazyTensor wide(const LazyTensor& x) { return is_16bit_float(x.dtype()) ? astype(x, DType::f32) : x; }

}  // namespace

std::pair<LazyTensor, LazyTensor> OnlineLogProbabilities::of(const LazyTensor& rows) const {
  const std::int64_t classes = head_.weight.shape(0);
  LazyTensor largest, total, slope;  // of the exponentials so far
  for (std::int64_t begin = 0; begin < classes; begin += block_) {
    const LazyTensor weight =
        cast_like(slice(head_.weight, 0, begin, std::min(begin + block_, classes)), rows);
    const LazyTensor logits = wide(head_.finish(matmul(rows, transpose(weight))));
    const LazyTensor own = stop_gradient(max(logits, -1, true));
    const LazyTensor now = begin == 0 ? own : maximum(largest, own);
    const LazyTensor exponentials = exp(logits - now);
    const LazyTensor sums = sum(exponentials, {-1}, true);
    const LazyTensor of_block = wide(vjp({&logits, 1}, {&rows, 1}, {&exponentials, 1})[0]);
    if (begin == 0) {
      total = sums;
      slope = of_block;
    } else {
      const LazyTensor factor = exp(largest - now);
      total = total * factor + sums;
      slope = slope * factor + of_block;
    }
    largest = now;
  }
  // The target's logit is rounded as its like are among the products of the block that it is in.
  const LazyTensor of_targets = cast_like(embedding(head_.weight, targets_), rows);
  const LazyTensor product = astype(sum(wide(rows) * wide(of_targets), {-1}), rows.dtype());
  const LazyTensor chosen = wide(head_.finish(product));
  const LazyTensor of_chosen = wide(grad(sum(chosen), rows));
  return {chosen - squeeze(largest + log(total), -1), of_chosen - slope / total};
}

}  // namespace caldera::detail
