// What ranks do together in training, as cases of caldera_ranks (ranks.cpp).
#pragma once

#include "engine/distributed/distributed.h"

namespace caldera::testing {

/// Throws Error unless three ranks with texts of 1, 10 and 100 tokens have the gradient of one process with
/// all of them, which a mean of the ranks' means is not.
void check_token_weights(const distributed::Group& group);

}  // namespace caldera::testing
