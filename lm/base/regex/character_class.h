// Rewrites character classes from the syntax of Oniguruma to that of PCRE2. Private to lm/.
#pragma once

#include <string>

#include "lm/base/regex/expression_reader.h"

namespace caldera::detail {

/// Reads a class in brackets and returns an expression for PCRE2 that matches the same characters: a class,
/// or, for unions with complements and intersections, a group. Throws ExpressionProblem.
std::string translate_class(ExpressionReader& in);

/// Reads an escape outside of brackets that stands for one character out of a set, and returns its
/// expression. Throws ExpressionProblem.
std::string translate_class_escape(ExpressionReader& in);

}  // namespace caldera::detail
