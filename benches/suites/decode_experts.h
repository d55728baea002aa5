// Rows of the suite "decode" for mixtures of experts: a token by the experts that are chosen for it.
#pragma once

#include <span>
#include <vector>

#include "benches/case.h"

namespace caldera::bench {

/// A layer of 64 experts of q8_0, of which a token has 8, or all: what reading the chosen ones alone saves.
std::vector<Case> expert_cases(std::span<const int> threads);

}  // namespace caldera::bench
