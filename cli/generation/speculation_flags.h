// The flags of speculative decoding.
#pragma once

#include <string>

#include "cli/arguments/arguments.h"
#include "lm/generate/speculation.h"

namespace caldera::cli {

/// --draft-model, --lookup and --draft-tokens.
class SpeculationFlags {
 public:
  void declare(Arguments& args);
  /// The flags that were given, by name; empty where there are none.
  std::string given() const;
  /// Returns what they ask for. Throws UsageError for --draft-tokens alone.
  SpeculationOptions options() const;

 private:
  std::string draft_model_;
  SpeculationOptions options_;
  Option tokens_option_;
};

}  // namespace caldera::cli
