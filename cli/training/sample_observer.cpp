#include "cli/training/sample_observer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/generate/generator.h"

namespace caldera::cli {

SampleObserver::SampleObserver(CausalLM& model, const Tokenizer& tokenizer, std::string prompt,
                               std::int64_t max_tokens, Receive receive)
    : model_(model),
      tokenizer_(tokenizer),
      prompt_(std::move(prompt)),
      ids_(tokenizer.encode(prompt_)),
      max_tokens_(std::min(max_tokens, model.config().max_positions() - std::ssize(ids_))),
      receive_(std::move(receive)) {
  if (ids_.empty()) throw ValueError("--sample-prompt: has no tokens");
  if (max_tokens_ < 1)
    throw ValueError(fmt::format("--sample-prompt: {} tokens leave no position to write in: the model has {}",
                                 ids_.size(), model.config().max_positions()));
}

void SampleObserver::on_validation(const ValidationRecord& record) {
  GenerateOptions options;
  options.max_tokens = max_tokens_;
  options.sampling.temperature = 0;
  options.stop_ids = stop_tokens(model_.config(), {}, tokenizer_.eos_id());
  const Generation generation = generate(model_, ids_, options);
  receive_(record.step, prompt_ + tokenizer_.decode(generation.ids));
}

}  // namespace caldera::cli
