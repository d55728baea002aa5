// Gradient clipping, by global norm and by value, as torch.nn.utils has it.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The Euclidean norm of all elements of all gradients together: a scalar, lazily. Throws ValueError for an
/// empty list.
LazyTensor global_norm(std::span<const LazyTensor> grads);

/// Replaces each gradient by itself times min(1, max_norm / (norm + 1e-6)) and returns the norm before
/// clipping, all lazily. Throws ValueError unless max_norm > 0.
LazyTensor clip_grad_norm(std::vector<LazyTensor>& grads, double max_norm);

/// Replaces each element by the nearest number in [-max_value, max_value], lazily, as
/// torch.nn.utils.clip_grad_value_. Throws ValueError unless max_value > 0.
void clip_grad_value(std::vector<LazyTensor>& grads, double max_value);

}  // namespace caldera
