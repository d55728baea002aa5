// Reads what several commands take: model folders with an adapter on top, and lists of token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lm/models/causal_lm.h"

namespace caldera::cli {

/// Makes the model that config.json in `dir` describes, without reading its weights: enough to check flags
/// and data against its configuration.
std::unique_ptr<CausalLM> open_model(const std::filesystem::path& dir, Device device);
/// Reads the weights of such a model, and applies the adapter in `adapter` unless that is empty. The model is
/// in evaluation mode.
void load_weights(CausalLM& model, const std::filesystem::path& dir, const std::filesystem::path& adapter,
                  DType dtype = DType::f32, HalfWeights halves = HalfWeights::converted);
/// Makes the model and reads its weights, to run it: see halves_for_inference().
std::unique_ptr<CausalLM> load_model(const std::filesystem::path& dir, const std::filesystem::path& adapter,
                                     Device device, DType dtype = DType::f32,
                                     Activations activations = Activations::exact,
                                     CacheType cache = CacheType::model);

/// "rounded" or "exact", as --activations gives it.
Activations parse_activations(const std::string& text);
/// "f32", "f16" or "q8_0", as --cache-type gives it; "": CacheType::model.
CacheType parse_cache_type(const std::string& text);
/// "f32", "f16" or "bf16", as --dtype gives it.
DType parse_dtype(const std::string& text);
/// Returns that, or, for "auto", the type of 16 bits that most numbers of the model's files have, where they
/// are most of all and the device computes in it; else f32, as on the CPU. Throws FileError where the files
/// cannot be read.
DType parse_dtype(const std::string& text, const std::filesystem::path& model, Device device);

/// The text of a file, or what standard input has to its end where `path` is "-". Throws FileError.
std::string read_text_input(const std::string& path);

/// "1 2 3" or "1,2,3". Throws UsageError, naming `flag`, for anything that is not a list of whole numbers,
/// and ValueError for one that no vocabulary holds.
std::vector<std::int32_t> parse_ids(const std::string& text, const char* flag);

}  // namespace caldera::cli
