// The tensors of GGUF files as Hugging Face's weights. Private to lm/formats/.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

/// The weights of all files together, in their order, under Hugging Face's names; a tensor that the family's
/// tables do not know keeps its own. What llama.cpp's converter did to them is undone when they are read.
/// They keep views of the files. Throws FileError for a type that is not supported and for shapes that the
/// metadata of the first file contradict.
std::vector<std::pair<std::string, StoredWeightPtr>> gguf_weights(std::span<const GgufFile> files,
                                                                  const GgufFamily& family);

}  // namespace caldera::detail
