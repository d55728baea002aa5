// The null device: plans and counts, computes nothing. For tests of scheduling, and for asking what a program
// would cost.
#pragma once

#include <memory>

#include "engine/device/backend.h"

namespace caldera {

/// Storages have a size but no memory; downloads give zeros.
std::unique_ptr<Backend> make_null_backend();

}  // namespace caldera
