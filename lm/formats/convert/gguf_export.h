// A model as a GGUF file, as llama.cpp's converter and quantiser would make it. Private to
// lm/formats/convert.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lm/base/json_file.h"
#include "lm/formats/config/model_config.h"
#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_writer.h"
#include "lm/formats/model_files.h"

namespace caldera::detail {

/// Holds what is exported, and in what type. Everything outlives the writer.
struct GgufExport {
  const ModelFiles& files;
  const JsonFields& fields;  ///< of a config.json that leaves nothing to the family's defaults
  const ModelConfig& config;
  const GgufFamily& family;
  std::string type;
};

/// Finds the family of a configuration. Throws FileError, naming those that can be written, for a model_type
/// that cannot.
const GgufFamily& gguf_family_of(const JsonFields& fields);

/// Counts what a type of few bits is for.
struct MatrixCounts {
  std::size_t all = 0;
  std::size_t as_floats = 0;  ///< of them, that have no form in blocks
};

/// Throws FileError naming the first field that says what GGUF files of the family have no key for.
void refuse_what_gguf_cannot_say(const GgufExport& model);

/// Adds the keys that config.json's fields become, and the weights as its type. Throws FileError for a field
/// or a weight that GGUF cannot hold.
void add_configuration(GgufWriter& writer, const GgufExport& model);
MatrixCounts add_weights(GgufWriter& writer, const GgufExport& model);
/// Returns the number that "general.file_type" has for a type.
std::uint32_t gguf_file_type(const std::string& type);
/// Whether a type has codes and scales, and is no float.
bool is_quantized_type(const std::string& type);
/// Lists what GgufExport::type may be, the default first.
std::vector<std::string> gguf_weight_types();

}  // namespace caldera::detail
