// Grammar: holds a generated text to a form, such as that of a JSON schema.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lm/generate/grammar/grammar_part.h"
#include "lm/generate/sampling/token_constraint.h"

namespace caldera {

/// The texts of a vocabulary's tokens, as a grammar looks at them. Does not change; copies share it.
class GrammarVocabulary {
 public:
  /// `token_bytes`: the bytes that each token adds to a text, by id; empty for one that adds none, as special
  /// tokens do. `end_ids`: tokens that end a text.
  GrammarVocabulary(const std::vector<std::string>& token_bytes, std::vector<std::int32_t> end_ids);

  struct Data;
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// A form of texts, for one vocabulary. JSON has no blanks around it, and few within. Where schemas leave the
/// order of keys open, they come in the order of "properties"; keys that are not listed there come last.
///
/// Of JSON Schema (draft 2020-12) this takes: type, enum, const, properties, required, additionalProperties,
/// items, prefixItems, minItems, maxItems, minLength, maxLength, pattern, format, minimum, maximum,
/// exclusiveMinimum, exclusiveMaximum, anyOf, oneOf, allOf, $ref, $defs (definitions) and nullable, as
/// docs/guide/serving.md says; annotations are passed over, everything else is refused by name.
///
/// Safe to use from several threads: what is learnt about tokens for one text serves the others.
class Grammar {
 public:
  /// Throws ValueError that names the keyword and where it stands for a schema that is not supported, and for
  /// one that nothing matches; "parts" are alternatives where there are several lists of them.
  Grammar(const std::vector<std::vector<GrammarPart>>& alternatives, GrammarVocabulary vocabulary);
  explicit Grammar(const std::vector<GrammarList>& lists, GrammarVocabulary vocabulary);
  /// The text of one JSON schema.
  static Grammar json_schema(std::string_view schema, const GrammarVocabulary& vocabulary);
  /// Whatever a regular expression matches as a whole (see grammar::read_pattern), or a grammar in the
  /// notation of llama.cpp (see grammar::add_gbnf) takes.
  static Grammar pattern(std::string_view expression, const GrammarVocabulary& vocabulary);
  static Grammar gbnf(std::string_view text, const GrammarVocabulary& vocabulary);
  /// Any JSON object.
  static Grammar json_object(const GrammarVocabulary& vocabulary);

  /// Follows a new text.
  std::unique_ptr<TokenConstraint> constraint() const;

 private:
  class Follower;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace caldera
