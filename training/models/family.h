// ModelFamily: describes a family of models to the registry. Private to training/models.
#pragma once

#include <cstdint>
#include <memory>

#include "training/io/json_file.h"
#include "training/io/model_config.h"
#include "training/models/causal_lm.h"

namespace caldera::detail {

struct ModelFamily {
  FamilyName name;
  /// The model that a config.json describes, with random weights that are not computed yet. Throws FileError
  /// for a field that is missing, of a wrong type, out of its domain or not supported.
  std::unique_ptr<CausalLM> (*make)(const JsonFields& config, Device device, std::uint64_t seed);
};

}  // namespace caldera::detail
