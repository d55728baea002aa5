// GBNF: grammars in the notation of llama.cpp.
#pragma once

#include <string_view>

#include "lm/generate/grammar/rules.h"

namespace caldera::grammar {

/// Adds a grammar's rules and returns that of `root`. The notation is that of llama.cpp's grammars/README.md,
/// which vLLM's "grammar" takes too: NAME ::= ALTERNATIVE | ..., "texts" and [classes] with the escapes \n \r
/// \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH, "." for any character, groups in brackets, * + ? {n} {n,} {n,m},
/// comments from # on. Rules may refer to themselves, but not before any character; they nest no deeper than
/// 192 rules. Throws ValueError that names the line for what is none.
RuleId add_gbnf(Rules& rules, std::string_view text);

}  // namespace caldera::grammar
