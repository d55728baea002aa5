// The weights of a Hugging Face folder, in whichever way config.json says that they are quantised. Private to
// lm/formats/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lm/formats/weights/model_weights.h"
#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

struct QuantizedFolder {
  std::string config;  ///< config.json without what says how weights are quantised
  std::vector<std::pair<std::string, StoredWeightPtr>> weights;
};

/// The weights of `files`, on which they keep views. `config` is the text of config.json, `where` begins
/// messages about it. Throws FileError for a scheme, or an option of one, that is not supported, and for
/// tensors that do not fit it.
QuantizedFolder folder_weights(const ModelWeights& files, const std::string& config,
                               const std::string& where);

/// The text of a config.json without what says how weights are quantised.
std::string without_quantization(const std::string& config, const std::string& where);

}  // namespace caldera::detail
