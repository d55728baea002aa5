#include "cli/generation/speculation_flags.h"

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"

namespace caldera::cli {

void SpeculationFlags::declare(Arguments& args) {
  const Option draft =
      args.option("--draft-model", draft_model_,
                  "A smaller model of the same vocabulary, which guesses tokens that the model then checks "
                  "together: faster where most guesses are right, and the same distribution")
          .type_name("DIR");
  args.flag("--lookup", options_.lookup, "Guess that the text goes on as it did after the same tokens before")
      .excludes(draft);
  tokens_option_ = args.option("--draft-tokens", options_.tokens, "Tokens that are guessed at a time")
                       .type_name("N")
                       .check(integer_in(1, 64))
                       .show_default();
}

std::string SpeculationFlags::given() const {
  if (options_.lookup) return "--lookup";
  if (!draft_model_.empty()) return "--draft-model";
  return tokens_option_.given() ? "--draft-tokens" : "";
}

SpeculationOptions SpeculationFlags::options() const {
  if (given() == "--draft-tokens") throw UsageError("--draft-tokens: needs --lookup or --draft-model");
  SpeculationOptions options = options_;
  options.draft_model = draft_model_;
  return options;
}

}  // namespace caldera::cli
