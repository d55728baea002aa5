#include "cli/model_flags.h"

#include <fmt/format.h>

#include "cli/domains.h"
#include "cli/usage_error.h"

namespace caldera::cli {

void declare_sampling(CLI::App& app, SamplingOptions& options) {
  app.add_option("--temperature", options.temperature, "0 takes the most likely token")
      ->type_name("T")
      ->check(non_negative_number())
      ->capture_default_str();
  app.add_option("--top-k", options.top_k, "Sample from the K most likely tokens; 0 is off")
      ->type_name("K")
      ->check(integer_in(0))
      ->capture_default_str();
  app.add_option("--top-p", options.top_p,
                 "Sample from the smallest set of tokens of this probability; 1 is off")
      ->type_name("P")
      ->check(number_in(0, 1, true))
      ->capture_default_str();
  app.add_option("--min-p", options.min_p, "Leave out tokens below this share of the best one's probability")
      ->type_name("P")
      ->check(number_in(0, 1))
      ->capture_default_str();
  app.add_option("--repetition-penalty", options.repetition_penalty,
                 "Divides positive and multiplies negative logits of tokens seen so far; 1 is off")
      ->type_name("R")
      ->check(positive_number())
      ->capture_default_str();
}

void declare_lora(CLI::App& app, LoRAOptions& options, std::vector<std::string>& targets) {
  app.add_option("--rank", options.rank, "Rank of the adapter")
      ->type_name("N")
      ->check(integer_in(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--alpha", options.alpha, "The adapter's output is scaled by alpha / rank")
      ->type_name("A")
      ->check(positive_number())
      ->capture_default_str();
  app.add_option("--dropout", options.dropout, "Dropout before the adapter, in training")
      ->type_name("P")
      ->check(number_in(0, 1, false, true))
      ->capture_default_str();
  app.add_option(
         "--target-modules", targets,
         "Layers to adapt, separated by commas, by the model's names for them (of Llama and Qwen2: "
         "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj), or all-linear for all of them")
      ->type_name("NAMES")
      ->delimiter(',')
      ->default_str("q_proj,v_proj");
}

std::vector<std::string> resolve_targets(CausalLM& model, const std::vector<std::string>& targets) {
  try {
    return resolve_lora_targets(model, targets);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--target-modules: {}", error.what()));
  }
}

}  // namespace caldera::cli
