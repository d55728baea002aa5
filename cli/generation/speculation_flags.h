// The flags of speculative decoding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/arguments/arguments.h"
#include "lm/generate/drafter.h"
#include "lm/generate/sampling/sampling_options.h"
#include "lm/models/causal_lm.h"

namespace caldera::cli {

/// --draft-model, --lookup and --draft-tokens, and what comes of them.
class SpeculationFlags {
 public:
  void declare(Arguments& args);
  /// The flags that were given, by name; empty where there are none.
  std::string given() const;
  /// Reads the draft model, if there is one. Throws UsageError for --draft-tokens alone, FileError where the
  /// draft model cannot be read, ValueError where its vocabulary is another one than the model's.
  void load(const CausalLM& model);

  bool drafts() const { return lookup_ || model_ != nullptr; }
  std::int64_t tokens() const { return tokens_; }
  /// Makes a drafter for one sequence that is sampled like this; null where none is asked for. After load(),
  /// on any thread. A drafter must not outlive this.
  std::shared_ptr<Drafter> drafter(const SamplingOptions& sampling) const;

 private:
  std::string draft_model_;
  bool lookup_ = false;
  std::int64_t tokens_ = 4;
  Option tokens_option_;
  std::unique_ptr<CausalLM> model_;
};

}  // namespace caldera::cli
