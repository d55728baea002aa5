// GRPO: group relative policy optimisation (Shao et al. 2024). The model answers each prompt several times;
// answers that are better than the others of their group become more likely.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "training/objectives/answer.h"
#include "training/objectives/objective.h"
#include "training/objectives/objective_options.h"

namespace caldera {

/// Returns a reward for each answer. Called on the thread that trains.
using RewardFunction = std::function<std::vector<double>(std::span<const Answer>)>;

/// Makes the objective "grpo" with a reward of the program's own. Its options are those of the registry but
/// "reward_command"; what is left out has its default. Throws ValueError as make_objective does.
std::unique_ptr<Objective> make_grpo(RewardFunction reward,
                                     const ObjectiveOptions& options = {.name = "grpo"});

}  // namespace caldera
