// The flags that say how sequences are decoded, of the commands that generate.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/generation/speculation_flags.h"
#include "lm/generate/decoding_options.h"
#include "lm/generate/grammar/grammar.h"
#include "lm/generate/sampling/log_probabilities.h"
#include "lm/models/causal_lm.h"

namespace caldera::cli {

/// --json-schema, --stop, --logprobs and the flags of SpeculationFlags. All of them go together.
class DecodingFlags {
 public:
  void declare(Arguments& args);
  /// Refuses what can never do: --logprobs without --json. Throws UsageError, before any work.
  void check(bool json) const;
  /// Reads the draft model and the schema. `tokenizer` may be null: what needs one is refused then. `options`
  /// has the tokens that end a text. Throws FileError, ValueError and UsageError, which name the flag.
  void prepare(const CausalLM& model, const std::shared_ptr<const Tokenizer>& tokenizer,
               DecodingOptions& options);
  /// Gives one sequence, whose sampling is set, a constraint and a drafter of its own. They must not outlive
  /// this.
  void begin(DecodingOptions& options) const;

 private:
  std::string schema_;
  std::vector<std::string> stop_;
  std::optional<std::int64_t> logprobs_;
  SpeculationFlags speculation_flags_;
  std::optional<Speculation> speculation_;
  std::optional<Grammar> grammar_;
};

/// The reports of a sequence's tokens: [{"id", "token", "logprob", "top_logprobs": [{"id", "token",
/// "logprob"}]}]. "token" is null without a tokenizer.
nlohmann::ordered_json reports_json(const std::vector<TokenReport>& reports, const Tokenizer* tokenizer);

}  // namespace caldera::cli
