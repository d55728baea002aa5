// The CPU device: OpenBLAS for contractions, SIMD micro-operations over L1 tiles for regions.
#pragma once

#include <memory>

#include "engine/device/backend.h"

namespace caldera {

/// The embedded default; always available.
std::unique_ptr<Backend> make_cpu_backend();

}  // namespace caldera
