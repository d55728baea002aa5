// FamilyFields: which fields of a config.json a family of models reads. Private to lm/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/formats/config/model_config.h"

namespace caldera::detail {

class JsonFields;

/// Names a field of a family's own, and what stands for it where a file does not name it.
struct OwnField {
  std::string_view name;
  std::string_view otherwise = {};  ///< as JSON; empty: nothing does
};

/// Fields that all families share are known beside these. Any other that is set, and is neither false, zero
/// nor empty, is refused by name: it may change what the model computes.
struct FamilyFields {
  std::vector<OwnField> own = {};              ///< read by the family: kept, and written back by save()
  std::vector<std::string_view> ignored = {};  ///< in its files, without effect on what is computed
  std::vector<std::string_view> activations = {"silu"};  ///< what its activation may be
  const char* activation_field = "hidden_act";
  bool sliding = false;         ///< has layers of type "sliding_attention"
  bool local_rope = false;      ///< rope_parameters may be nested by type of layer
  bool partial_rotary = false;  ///< part of a head's width may be rotated
  bool rotary = true;           ///< has rotary positions
  bool scales_queries = false;  ///< by their position, with llama_4_scaling_beta
  /// Other names that the family's files have for shared fields: {"hidden_size", "n_embd"}.
  std::vector<std::pair<const char*, const char*>> aliases = {};

  /// The name under which the file holds a shared field.
  const char* name_of(const char* shared, const JsonFields& fields) const;
};

/// Says whether a value switches nothing on: null, false, zero, an empty string, list or object.
bool is_off(const nlohmann::json& value);

/// Throws FileError naming the first field that is not known.
void check_fields(const JsonFields& fields, const FamilyFields& family);

/// The fields that the shared part of a config.json does not hold: those of rotary positions and of layers'
/// types, and the family's own ones, with what stands for those that the file does not name: who reads them
/// without the family's defaults need not guess. Nulls stay null.
ConfigFields fields_to_keep(const JsonFields& fields, const FamilyFields& family);

}  // namespace caldera::detail
