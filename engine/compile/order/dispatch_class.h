// Which steps may share a dispatch.
#pragma once

#include <optional>

#include "engine/base/hash.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Returns a hash of what steps that share a dispatch have in common; none for a step that shares its
/// dispatch with no other. Regions: the kernel. Contractions: the epilogue, the types, and what else a
/// device's kernel for them depends on: how each operand is along K, which segments have a factor, whether
/// there are but few rows or columns.
std::optional<Hash128> dispatch_class(const Plan& plan, const Step& step);

/// That of a contraction, but for its epilogue.
Hash128 product_class(const Plan& plan, const Step& step);

}  // namespace caldera
