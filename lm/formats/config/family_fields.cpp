#include "lm/formats/config/family_fields.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lm/base/json_file.h"

namespace caldera::detail {
namespace {

using Names = std::vector<std::string_view>;

bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// What read_config() reads for every family.
const Names& shared() {
  static const Names kNames{"architectures",
                            "model_type",
                            "hidden_size",
                            "intermediate_size",
                            "num_hidden_layers",
                            "num_attention_heads",
                            "num_key_value_heads",
                            "head_dim",
                            "vocab_size",
                            "max_position_embeddings",
                            "rms_norm_eps",
                            "rope_theta",
                            "tie_word_embeddings",
                            "hidden_act",
                            "initializer_range",
                            "bos_token_id",
                            "eos_token_id",
                            "torch_dtype",
                            "dtype",
                            "quantization_config"};
  return kNames;
}

/// Of rotary positions and of layers' types: written back as they were read.
Names positional(const FamilyFields& family) {
  Names names;
  if (family.rotary)
    names = {"rope_scaling", "rope_parameters", "partial_rotary_factor", "original_max_position_embeddings"};
  if (family.sliding) names.insert(names.end(), {"sliding_window", "layer_types"});
  return names;
}

/// What transformers and those who save its files write beside a family's fields: names, versions, settings
/// of training, of generation and of classification. None changes a forward pass in evaluation mode.
const Names& harmless() {
  static const Names kNames{"_name_or_path",
                            "is_matryoshka",
                            "matryoshka_dimensions",
                            "name_or_path",
                            "_attn_implementation",
                            "_attn_implementation_autoset",
                            "auto_map",
                            "_commit_hash",
                            "transformers_version",
                            "transformers.js_config",
                            "use_cache",
                            "output_past",
                            "cache_implementation",
                            "return_dict",
                            "output_attentions",
                            "output_hidden_states",
                            "output_router_logits",
                            "router_aux_loss_coef",
                            "attention_dropout",
                            "attention_probs_dropout_prob",
                            "hidden_dropout",
                            "hidden_dropout_prob",
                            "embd_pdrop",
                            "resid_pdrop",
                            "attn_pdrop",
                            "classifier_dropout",
                            "classifier_bias",
                            "pretraining_tp",
                            "pad_token_id",
                            "unk_token_id",
                            "sep_token_id",
                            "cls_token_id",
                            "mask_token_id",
                            "decoder_start_token_id",
                            "id2label",
                            "label2id",
                            "num_labels",
                            "problem_type",
                            "finetuning_task",
                            "task_specific_params",
                            "tokenizer_class",
                            "torchscript",
                            "use_bfloat16",
                            "prefix",
                            "chunk_size_feed_forward",
                            "gradient_checkpointing",
                            "unsloth_fixed",
                            "unsloth_version",
                            "model_name",
                            "bad_words_ids",
                            "begin_suppress_tokens",
                            "suppress_tokens",
                            "forced_bos_token_id",
                            "forced_eos_token_id",
                            "max_length",
                            "min_length",
                            "do_sample",
                            "temperature",
                            "top_k",
                            "top_p",
                            "typical_p",
                            "num_beams",
                            "num_beam_groups",
                            "diversity_penalty",
                            "length_penalty",
                            "repetition_penalty",
                            "early_stopping",
                            "no_repeat_ngram_size",
                            "encoder_no_repeat_ngram_size",
                            "num_return_sequences",
                            "remove_invalid_values",
                            "exponential_decay_length_penalty",
                            "return_dict_in_generate",
                            "output_scores",
                            "tie_encoder_decoder",
                            "cross_attention_hidden_size",
                            "is_decoder",
                            "is_encoder_decoder",
                            "add_cross_attention",
                            "pruned_heads",
                            "tf_legacy_loss",
                            "summary_activation",
                            "summary_first_dropout",
                            "summary_proj_to_labels",
                            "summary_type",
                            "summary_use_proj",
                            "reorder_and_upcast_attn",
                            "n_ctx",
                            "_num_labels",
                            "base_model_tp_plan",
                            "base_model_pp_plan",
                            "use_return_dict",
                            "language",
                            "max_new_tokens",
                            "gradient_checkpointing_kwargs",
                            "neftune_noise_alpha"};
  return kNames;
}

}  // namespace

bool is_off(const nlohmann::json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.empty();
}

const char* FamilyFields::name_of(const char* shared, const JsonFields& fields) const {
  for (const auto& [name, alias] : aliases)
    if (std::string_view(name) == shared && fields.has(alias)) return alias;
  return shared;
}

void check_fields(const JsonFields& fields, const FamilyFields& family) {
  Names of_positions = positional(family);
  for (const auto& [shared_name, alias] : family.aliases) of_positions.emplace_back(alias);
  for (const std::string& name : fields.names()) {
    const nlohmann::json* value = fields.find(name.c_str());
    if (value == nullptr || contains(shared(), name) || contains(of_positions, name) ||
        contains(harmless(), name) ||
        std::ranges::find(family.own, name, &OwnField::name) != family.own.end() ||
        contains(family.ignored, name) || is_off(*value))
      continue;
    fields.fail(printable(name).c_str(),
                "is not known: it may change what the model computes. Remove it if it does not");
  }
}

ConfigFields fields_to_keep(const JsonFields& fields, const FamilyFields& family) {
  ConfigFields kept;
  const auto keep = [&](const OwnField& field) {
    const std::string key(field.name);
    if (contains(shared(), field.name)) return;
    if (const nlohmann::json* value = fields.find(key.c_str()); value != nullptr)
      kept.emplace_back(key, value->dump());
    else if (fields.names_field(key.c_str()))
      kept.emplace_back(key, "null");
    else if (!field.otherwise.empty())
      kept.emplace_back(key, field.otherwise);
  };
  for (const std::string_view name : positional(family)) keep({name});
  for (const OwnField& field : family.own) keep(field);
  return kept;
}

}  // namespace caldera::detail
