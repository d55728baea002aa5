// Samples that losses share.
#pragma once

#include <vector>

#include "ops/loss/reduction.h"
#include "tests/catalogue/table/operation.h"

namespace caldera::catalogue {

/// The argument `reduction`: "mean" (also where it is absent), "sum", "none" or "batchmean". ValueError for
/// others.
Reduction reduction_of(const Arguments& arguments);

/// Losses of two tensors: shapes that are equal and shapes that broadcast, each reduction, and a few shapes
/// with each of the `variants`.
std::vector<Sample> loss_samples(const Operation& operation, const std::vector<Arguments>& variants = {});
/// The same without broadcasting.
std::vector<Sample> unbroadcast_loss_samples(const Operation& operation,
                                             const std::vector<Arguments>& variants = {});
/// Two operands whose shapes do not fit.
std::vector<ErrorSample> loss_errors(const Operation& operation);

/// Where two operands have these ranges, no difference of theirs is a multiple of 1/64: kinks at 0 and at
/// round margins are between values.
inline constexpr Range kOnGrid{};
inline constexpr Range kOffGrid{.offset = 1.0 / 128};
/// Probabilities that are neither 0 nor 1.
inline constexpr Range kProbability{.low = 1.0 / 16, .high = 15.0 / 16};

}  // namespace caldera::catalogue
