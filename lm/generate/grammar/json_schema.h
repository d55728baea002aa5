// JSON schemas as rules of a grammar.
#pragma once

#include <vector>

#include "lm/generate/grammar/grammar_part.h"
#include "lm/generate/grammar/rules.h"

namespace caldera::grammar {

/// Adds a rule whose texts are those of one of the lists. Throws ValueError for a schema that is not
/// supported, naming the keyword and where it stands.
RuleId add_lists(Rules& rules, const std::vector<GrammarList>& lists);

}  // namespace caldera::grammar
