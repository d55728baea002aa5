// Suggestions: what somebody may have meant by the name of a flag that there is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caldera::cli {

/// Returns the name of `names` that `name` stands for in other tools (mlx-lm, Hugging Face's trainer,
/// llama.cpp: "lr" for "learning-rate"), or that it is nearest to, a letter or two apart; empty where none is
/// near. Names are without dashes in front; "_" counts as "-".
std::string suggestion(std::string_view name, const std::vector<std::string>& names);

}  // namespace caldera::cli
