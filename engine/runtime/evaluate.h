// The plan of an evaluation. `eval` itself is declared with the tensors (engine/graph/lazy_tensor.h).
#pragma once

#include <initializer_list>
#include <memory>
#include <span>

#include "engine/graph/lazy_tensor.h"
#include "engine/plan/plan.h"

namespace caldera {

/// The plan by which `outputs` (lazy, on one device) would be evaluated now; null if nothing is left to
/// compute. Does not evaluate, and neither asks nor fills the cache. Without optional outputs, which depend
/// on what the program holds at that moment and on the memory that is left: they change no step. Throws
/// ValueError where the graph crosses devices: it has several plans then.
std::shared_ptr<const Plan> plan_for(std::span<const LazyTensor> outputs);
std::shared_ptr<const Plan> plan_for(std::initializer_list<LazyTensor> outputs);

}  // namespace caldera
