// ObjectiveOptions: which objective, and its numbers.
#pragma once

#include <map>
#include <string>

namespace caldera {

struct ObjectiveOptions {
  std::string name = "sft";
  std::map<std::string, double> more;  ///< options that only some objectives have, such as "beta"

  /// The value of an option, or `otherwise` where it is not given.
  double value(const std::string& option, double otherwise) const {
    const auto found = more.find(option);
    return found == more.end() ? otherwise : found->second;
  }
};

}  // namespace caldera
