// SampleObserver: shows what the model writes while it is trained.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lm/models/causal_lm.h"
#include "lm/tokenizers/tokenizer.h"
#include "training/trainer/observer.h"

namespace caldera::cli {

/// With each validation the most likely continuation of a prompt, which changes nothing of the training.
class SampleObserver final : public TrainObserver {
 public:
  /// Receives a sample: the step, and the prompt with its continuation.
  using Receive = std::function<void(std::int64_t step, const std::string& text)>;

  /// Keeps references to model and tokenizer. Throws ValueError for a prompt without tokens, or one that
  /// leaves no position to write in.
  SampleObserver(CausalLM& model, const Tokenizer& tokenizer, std::string prompt, std::int64_t max_tokens,
                 Receive receive);

  void on_validation(const ValidationRecord& record) override;

 private:
  CausalLM& model_;
  const Tokenizer& tokenizer_;
  std::string prompt_;
  std::vector<std::int32_t> ids_;
  std::int64_t max_tokens_;
  Receive receive_;
};

}  // namespace caldera::cli
