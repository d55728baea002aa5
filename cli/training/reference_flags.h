// Declares the flags of the second model of an objective: --reference-model and --teacher.
#pragma once

#include <memory>
#include <string>

#include "cli/arguments/arguments.h"
#include "lm/models/causal_lm.h"

namespace caldera::cli {

/// Says which model dpo and its like compare with, or which one distillation learns from.
class ReferenceFlags {
 public:
  /// Declares the flags; the object must outlive the parser.
  void declare(Arguments& args);
  /// Loads the second model, frozen, next to `model`; null where neither flag is given. Throws FileError as
  /// loading does, and ValueError for one with another vocabulary.
  std::unique_ptr<CausalLM> load(const CausalLM& model, DType dtype) const;

 private:
  std::string reference_;
  std::string teacher_;
};

}  // namespace caldera::cli
