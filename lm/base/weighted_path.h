// Paths with a weight behind them, as flags give them: "PATH:0.5".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace caldera {

struct WeightedPath {
  std::filesystem::path path;
  double weight = 1;
};

/// Reads "PATH" or "PATH:WEIGHT"; where a file has that whole name it is the path. Throws ValueError, naming
/// `what` has the weight ("data"), unless that is positive and at most 1000.
WeightedPath parse_weighted_path(const std::string& text, std::string_view what);

}  // namespace caldera
