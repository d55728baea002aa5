#include "cli/arguments/model_flags.h"

#include <fmt/format.h>

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "lm/formats/hub_cache.h"

namespace caldera::cli {

Option declare_model(Arguments& args, std::string& folder) {
  return args.option("--model", folder, "Model folder, a GGUF file, or ORG/NAME of what `caldera pull` got")
      .required()
      .type_name("PATH")
      .changed_by(model_path);
}

Option declare_adapter(Arguments& args, std::string& folder) {
  return args
      .option("--adapter", folder,
              "LoRA adapter to apply to the model: a folder of PEFT or mlx-lm, or a file of GGUF")
      .type_name("PATH");
}

Option declare_dtype(Arguments& args, std::string& dtype, const std::string& help) {
  return args.option("--dtype", dtype, help).type_name("T").one_of({"f32", "f16", "bf16"}).show_default();
}

Option declare_dtype_or_auto(Arguments& args, std::string& dtype) {
  return args
      .option(
          "--dtype", dtype,
          "What the model computes in; auto is what its files have, and on the CPU, where that is no faster, "
          "f32 with matrices as the files have them")
      .type_name("T")
      .one_of({"auto", "f32", "f16", "bf16"})
      .show_default();
}

Option declare_activations(Arguments& args, std::string& activations) {
  return args
      .option(
          "--activations", activations,
          "What quantised weights are multiplied with on the CPU: activations rounded to 8 bits by blocks "
          "of 32, or as they are")
      .type_name("A")
      .one_of({"rounded", "exact"})
      .show_default();
}

Option declare_cache_type(Arguments& args, std::string& type) {
  return args
      .option("--cache-type", type,
              "What keys and values of earlier tokens are kept as: f16 takes half of the memory of f32, q8_0 "
              "(8 bits, and a scale for 32 numbers) about a quarter")
      .type_name("T")
      .one_of({"f32", "f16", "q8_0"})
      .show_default("what the model computes in");
}

Option declare_seed(Arguments& args, std::uint64_t& seed, const std::string& help) {
  return args.option("--seed", seed, help).type_name("N").check(seed_value()).show_default();
}

Option declare_pooling(Arguments& args, std::string& pooling) {
  return args.option("--pooling", pooling, "How the tokens' vectors become one")
      .one_of({"mean", "cls", "lasttoken", "max"})
      .show_default("what the model says, else mean");
}

void declare_sampling(Arguments& args, SamplingOptions& options) {
  args.option("--temperature", options.temperature, "0 takes the most likely token")
      .type_name("T")
      .check(non_negative_number())
      .show_default();
  args.option("--top-k", options.top_k, "Sample from the K most likely tokens; 0 is off")
      .type_name("K")
      .check(integer_in(0))
      .show_default();
  args.option("--top-p", options.top_p,
              "Sample from the smallest set of tokens of this probability; 1 is off")
      .type_name("P")
      .check(number_in(0, 1, true))
      .show_default();
  args.option("--min-p", options.min_p, "Leave out tokens below this share of the best one's probability")
      .type_name("P")
      .check(number_in(0, 1))
      .show_default();
  args.option("--repetition-penalty", options.repetition_penalty,
              "Divides positive and multiplies negative logits of tokens seen so far; 1 is off")
      .type_name("R")
      .check(positive_number())
      .show_default();
}

void declare_mirostat(Arguments& args, Mirostat& options) {
  args.flag("--mirostat", options.on,
            "Draw tokens that surprise by about --mirostat-tau bits (mirostat 2.0), in place of top-k, top-p "
            "and min-p");
  args.option("--mirostat-tau", options.tau, "Bits that tokens are to surprise by")
      .type_name("BITS")
      .check(non_negative_number())
      .show_default();
  args.option("--mirostat-eta", options.eta, "How fast --mirostat follows what was drawn")
      .type_name("E")
      .check(number_in(0, 1))
      .show_default();
}

void check_mirostat(const SamplingOptions& options) {
  if (options.mirostat.on && options.temperature == 0)
    throw UsageError("--mirostat: nothing is drawn at temperature 0; say --temperature 1, or leave it out");
}

void declare_lora(Arguments& args, LoRAOptions& options, std::vector<std::string>& targets) {
  args.option("--rank", options.rank, "Rank of the adapter")
      .type_name("N")
      .check(integer_in(1, 1 << 20))
      .show_default();
  args.option("--alpha", options.alpha, "The adapter's output is scaled by alpha / rank")
      .type_name("A")
      .check(positive_number())
      .show_default();
  args.option("--dropout", options.dropout, "Dropout before the adapter, in training")
      .type_name("P")
      .check(number_in(0, 1, false, true))
      .show_default();
  args.option("--target-modules", targets,
              "Layers to adapt, separated by commas, by the model's names for them (most have "
              "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj), or all-linear for all of them")
      .type_name("NAMES")
      .delimiter(',')
      .show_default("q_proj,v_proj");
}

std::vector<std::string> resolve_targets(CausalLM& model, const std::vector<std::string>& targets) {
  try {
    return resolve_lora_targets(model, targets);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--target-modules: {}", error.what()));
  }
}

}  // namespace caldera::cli
