// Gradient clipping by global norm, as torch.nn.utils.clip_grad_norm_.
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

}  // namespace caldera
