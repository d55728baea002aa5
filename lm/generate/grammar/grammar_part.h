// GrammarPart: a piece of what a grammar's texts are made of.
#pragma once

#include <cstdint>
#include <string>

namespace caldera {

/// Parts of a text one after another: JSON of a schema, and what stands around it.
struct GrammarPart {
  enum class Kind : std::uint8_t { text, json_schema, json_object, json_value };
  Kind kind = Kind::text;
  std::string text;  ///< the text itself, or the schema's JSON
};

}  // namespace caldera
