// The suites of `caldera bench`: the cases that each measures. One file a suite.
#pragma once

#include <vector>

#include "benches/case.h"

namespace caldera::bench {

std::vector<Case> seeds_suite();
std::vector<Case> ops_suite();
std::vector<Case> train_suite();
std::vector<Case> graph_suite();
/// Tokens of models of random weights, as files of each type have them. Most run on request alone.
std::vector<Case> decode_suite();
/// Cases of the others, with bounds.
std::vector<Case> lavapipe_suite();

}  // namespace caldera::bench
