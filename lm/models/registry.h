// Finds the family of a model by the model_type of its config.json, and makes the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lm/models/causal_lm.h"

namespace caldera {

/// The model_type of every known family of models that generate text, in the registry's order.
std::vector<std::string> model_types();
/// Lists the types of every family of encoders: models that give a text's hidden states, and nothing to go on
/// with.
std::vector<std::string> encoder_model_types();

/// Says what a family is called in config.json, and what its models are for.
struct FamilyFacts {
  std::string model_type;
  std::vector<std::string> architectures;  ///< the first is the one that is written
  bool encoder = false;
};

/// Every known family, in the registry's order: what docs/guide/models.md is made of.
std::vector<FamilyFacts> model_families();

/// The model that a config.json (or any file of that form), a model folder or a GGUF file describes, with
/// random weights as Hugging Face initialises them, a function of the seed alone. They are not computed yet:
/// call materialize(), or load_weights() to replace them. Throws FileError for a file that is not readable
/// JSON, a family that is not known (naming those that are), a feature that is not supported, and a field
/// that is missing, of a wrong type or out of its domain.
std::unique_ptr<CausalLM> make_causal_lm(const std::filesystem::path& path, Device device,
                                         std::uint64_t seed = 0);

/// Makes the model that the text of a config.json describes; throws as make_causal_lm(), "config: ...".
std::unique_ptr<CausalLM> make_causal_lm_from_json(std::string_view config, Device device,
                                                   std::uint64_t seed = 0);
/// Returns the text of the config.json of a model folder or file; of a GGUF file what its metadata say.
/// Throws FileError.
std::string model_config_text(const std::filesystem::path& path);

/// The model of a folder in Hugging Face's layout or of a GGUF file (see ModelFiles and
/// CausalLM::load_weights). It is in evaluation mode. Throws FileError.
std::unique_ptr<CausalLM> load_causal_lm(const std::filesystem::path& path, Device device,
                                         DType dtype = DType::f32,
                                         HalfWeights halves = HalfWeights::converted);

/// Whether a config.json, a model folder or a GGUF file describes an encoder. Throws FileError as
/// make_text_model does for a family that is not known.
bool is_encoder(const std::filesystem::path& path);

/// Makes a model of any family, encoders among them: embeddings are made with it.
std::unique_ptr<CausalLM> make_text_model(const std::filesystem::path& config_file, Device device,
                                          std::uint64_t seed = 0);
std::unique_ptr<CausalLM> load_text_model(const std::filesystem::path& dir, Device device,
                                          DType dtype = DType::f32,
                                          HalfWeights halves = HalfWeights::converted);

}  // namespace caldera
