// Declares the flags of training objectives: --objective, and a flag for each option that an objective has.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "training/objectives/objective_options.h"

namespace caldera::cli {

/// Collects what the flags say of the objective. An option that several objectives have is one flag.
class ObjectiveFlags {
 public:
  /// Declares the flags; the object must outlive the parser.
  void declare(Arguments& args);
  /// The options as they were given. Throws UsageError for one that the objective does not have or that is
  /// outside of its domain.
  ObjectiveOptions options() const;

 private:
  std::string name_ = "sft";
  std::map<std::string, std::optional<double>> numbers_;
  std::map<std::string, std::string> words_;
};

}  // namespace caldera::cli
