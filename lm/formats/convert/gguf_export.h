// A model as a GGUF file, as llama.cpp's converter and quantiser would make it. Private to lm/formats/.
#pragma once

#include <string>

#include "lm/formats/gguf/gguf_writer.h"
#include "lm/formats/model_files.h"

namespace caldera::detail {

/// Adds the keys that config.json's fields become, and the weights as `type`. Keeps a reference to `files`.
/// Throws FileError for a family that has no GGUF form here, and for a field or a weight that GGUF cannot
/// hold.
void add_configuration(GgufWriter& writer, const ModelFiles& files, const std::string& type);
void add_weights(GgufWriter& writer, const ModelFiles& files, const std::string& type);

}  // namespace caldera::detail
