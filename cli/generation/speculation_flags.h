// The flags of speculative decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/arguments/arguments.h"
#include "lm/generate/generator.h"
#include "lm/models/causal_lm.h"

namespace caldera::cli {

/// --draft-model, --lookup and --draft-tokens, and what comes of them.
class SpeculationFlags {
 public:
  void declare(Arguments& args);
  /// Sets the drafter of `options`, whose sampling is set, if one is asked for; it lives as long as this.
  /// Throws FileError where the draft model cannot be read, ValueError where its vocabulary is another one.
  void apply(GenerateOptions& options, const CausalLM& model);

 private:
  std::string draft_model_;
  bool lookup_ = false;
  std::int64_t tokens_ = 4;
  std::unique_ptr<CausalLM> model_;
};

}  // namespace caldera::cli
