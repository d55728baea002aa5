// Activation functions by the names that hidden_act of a Hugging Face config.json has for them.
#pragma once

#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// An elementwise function: silu, say.
using Activation = LazyTensor (*)(const LazyTensor&);

/// The function of that name, with the numerics of transformers' ACT2FN. Throws ValueError, naming those that
/// are known, for another name.
Activation activation_of(std::string_view hidden_act);

}  // namespace caldera
