// A plan written by hand that has the larger forms of steps: rows, contractions with segments and an
// epilogue, attention and its gradients, joined steps. What the verifier's tests damage.
#pragma once

#include "engine/plan/plan.h"

namespace caldera::testing::forms {

/// Buffers by name. Inputs, outputs, arena.
enum Buffer : std::int32_t {
  kX,         // 4 x 8
  kGain,      // 8
  kW,         // 8 x 6
  kLow,       // 4 x 2
  kHigh,      // 2 x 6
  kBias,      // 6
  kBefore,    // 4 x 6
  kQueries,   // 2 x 4 x 3
  kKeys,      // 2 x 5 x 3
  kValues,    // 2 x 5 x 2
  kShift,     // 4 x 5, added to scores
  kGo,        // 2 x 4 x 2
  kDq,        // 2 x 4 x 3
  kDk,        // 2 x 5 x 3
  kDv,        // 2 x 5 x 2
  kUpdated,   // 24 + 10 + 8
  kLargest,   // 4
  kSoft,      // 4 x 8
  kTotals,    // 4; is stored where kLargest was
  kResidual,  // 4 x 6
  kSum,       // 4 x 6; is stored where kResidual was
  kQ,         // 2 x 4 x 3
  kO,         // 2 x 4 x 2
  kHighest,   // 2 x 4
  kTotal,     // 2 x 4
  kDelta,     // 2 x 4
};

enum StepName : std::size_t {
  kMax,        // largest = max over the row of x
  kCopy,       // residual = before
  kCopyQ,      // q = queries
  kRows,       // soft = exp(x - largest) / totals * gain, totals = sum of the row    over kLargest
  kAttention,  // o, highest, total = attention(q, keys, values), causal, shifted
  kLora,       // sum = soft w + scale low high, + bias * totals + residual           over kResidual
  kSumUp,      // delta = sum(go * o)
  kGradQ,
  kGradKv,
  kFirst,   // updated[0:24] = sum * rate
  kSecond,  // updated[24:34] = gain[0:5] x 2 * rate                                  joined
  kThird,   // updated[34:42] = delta * other                                         joined
};

/// Scalars of the plan.
enum Scalar : std::int32_t { kScale, kFill, kOffset, kZero, kRate, kOther };

Plan sound_forms_plan();

}  // namespace caldera::testing::forms
