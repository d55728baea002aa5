// Gathers what a job reads: numbers as a plan takes them, and what has to be there before it runs. Internal
// to the runtime.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/graph/node.h"
#include "engine/runtime/job.h"

namespace caldera {

std::shared_ptr<Job> new_job();

/// The bits that a plan's scalar argument of `dtype` has, from those that the attribute of a scalar leaf has.
std::uint64_t scalar_bits(std::int64_t raw, DType dtype);
/// Returns the bits of a scalar leaf. Throws ValueError for one that stands for an argument of a function
/// that is being traced.
std::uint64_t scalar_bits(const Node& node);

/// The job needs the value of `leaf`, which may be on its way. Under graph_mutex().
void depend_on(Job& job, const Node& leaf, const Value& value);

}  // namespace caldera
