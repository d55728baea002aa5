// chain: functions one behind the other; those that are alike run as one loop.
#pragma once

#include <cstdint>
#include <span>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct ChainOptions {
  std::int64_t snapshots = 0;  ///< as ScanOptions::snapshots
  bool checkpointed = false;   ///< functions that are like no other are checkpointed: see checkpoint()
};

/// Computes f_n(... f_2(f_1(x))). Functions in a row that are alike, as the layers of a network are, become
/// the turns of one scan() over lists of the tensors that they captured: one of them is planned, and the
/// inside of each is computed again for gradients. So do groups of functions that repeat (a b a b).
///
/// Functions are alike where they build the same graph, of tensors of the same shapes and types, with the
/// same numbers, and give what they get: one shape and type. Each is called once, on a stand-in: what it
/// evaluates must not depend on that (ValueError). One that draws random numbers from a seed of its own, has
/// a gradient of its own (custom_vjp), or moves tensors to another device (to()) is like no other. Throws
/// ValueError for an empty function.
LazyTensor chain(std::span<const UnaryFunction> functions, const LazyTensor& x, ChainOptions options = {});

}  // namespace caldera
