// ModelFamily: describes a family of models to the registry. Private to lm/models/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lm/base/json_file.h"
#include "lm/formats/config/read_config.h"
#include "lm/models/causal_lm.h"

namespace caldera::detail {

/// Says what a model gives: the next token, or what a text is like.
enum class ModelUse : std::uint8_t { generation, embedding };

struct ModelFamily {
  FamilyName name;
  /// The model that a config.json describes, with random weights that are not computed yet. Throws FileError
  /// for a field that is missing, of a wrong type, out of its domain or not supported.
  std::unique_ptr<CausalLM> (*make)(const JsonFields& config, Device device, std::uint64_t seed);
  /// Other architectures that its files may name, whose heads are passed over.
  std::vector<std::string_view> more_architectures = {};
  ModelUse use = ModelUse::generation;
};

/// A number of a config.json that must be positive: what is given, or `otherwise`. Throws FileError.
double positive_number(const JsonFields& fields, const char* field, double otherwise);
/// Reads a positive number that may be null, which is none; `otherwise` where the field is not there at all.
std::optional<double> optional_positive(const JsonFields& fields, const char* field,
                                        std::optional<double> otherwise);

}  // namespace caldera::detail
