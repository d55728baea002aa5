// Reads ModelConfig from a config.json, and writes it. Private to lm/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lm/formats/config/family_fields.h"
#include "lm/formats/config/model_config.h"

namespace caldera::detail {

class JsonFields;

/// Says how a config.json names a family.
struct FamilyName {
  std::string_view architecture;
  std::string_view model_type;
};

/// The place in `known` of the family that a config.json names by `architectures`, `model_type` or both.
/// Throws FileError naming the known ones for any other, for two that contradict each other, and for none.
std::size_t match_family(const JsonFields& fields, std::span<const FamilyName> known);

/// Reads the shared fields. What the file leaves out keeps the value it has in `config`: the family's
/// default; with `family.sliding` its default of `layers` as well (see set_layers()). Throws FileError,
/// "path: field 'x' ...", for a feature that the family does not support, a field that is not known and may
/// change the result, and a field that is missing, of a wrong type or out of its domain.
void read_config(const JsonFields& fields, ModelConfig& config, const FamilyFields& family = {});

/// Sets, for families with sliding layers and after read_config(), the layers that the file lists in
/// layer_types, or else those that `slides` names by their index.
void set_layers(const JsonFields& fields, ModelConfig& config,
                const std::function<bool(std::int64_t layer)>& slides);
/// Sets the layers of families whose layers all slide where there is a sliding_window, and none where there
/// is not, whatever layer_types says: one that says otherwise is refused.
void set_equal_layers(const JsonFields& fields, ModelConfig& config);

/// A config.json, with a family's `own` fields, that Hugging Face transformers and the family's reader read
/// back as this configuration.
std::string config_json(const ModelConfig& config, const ConfigFields& own);

}  // namespace caldera::detail
