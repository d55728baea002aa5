// GrammarPart: a piece of what a grammar's texts are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caldera {

/// Parts of a text one after another: JSON of a schema, and what stands around it.
struct GrammarPart {
  enum class Kind : std::uint8_t {
    text,
    json_schema,
    json_object,
    json_value,
    pattern,  ///< what a regular expression matches as a whole
    gbnf      ///< a grammar as llama.cpp writes them
  };
  Kind kind = Kind::text;
  std::string text;  ///< the text itself, the schema's JSON, the expression or the grammar
  /// Leaves out what is not supported of a schema, instead of refusing it.
  bool lenient = false;
};

/// Texts one after another: what stands before, one of some lists of parts, any number more of these with
/// what stands between, and what stands behind.
struct GrammarList {
  std::vector<GrammarPart> before;
  std::vector<std::vector<GrammarPart>> items;
  std::vector<GrammarPart> between;  ///< empty: there is one item
  std::vector<GrammarPart> after;
};

}  // namespace caldera
