// Pooling: from the hidden states of a text's tokens to one vector, as sentence-transformers does.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

enum class Pooling : std::uint8_t { mean, cls, last, max };

/// "mean", "cls", "lasttoken" (or "last"), "max". Throws ValueError, naming these, for another name.
Pooling pooling_of(std::string_view name);
std::string_view name(Pooling pooling);

/// hidden (B, T, features) and present (B, T), boolean: the mean over the tokens that are present, in f32,
/// (B, features). Zeros for a row without any.
LazyTensor mean_pool(const LazyTensor& hidden, const LazyTensor& present);
/// Pools in any of the ways rows whose tokens stand at the front. `last` takes the last one present.
LazyTensor pool(const LazyTensor& hidden, const LazyTensor& present, Pooling pooling);
/// x / max(|x|, 1e-12) over the last axis: PyTorch's F.normalize.
LazyTensor normalize(const LazyTensor& x);

}  // namespace caldera
