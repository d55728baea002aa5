// Rewrites regular expressions from the syntax of Oniguruma, which tokenizer.json uses, to that of PCRE2.
// Private to lm/.
#pragma once

#include <string>
#include <string_view>

namespace caldera::detail {

/// The rewritten expression, or what is wrong with the original: the end of a sentence about it.
struct TranslatedExpression {
  std::string expression;
  std::string problem;
};

/// An expression for PCRE2 (with UTF, UCP and MULTILINE) that matches what Oniguruma, in Ruby's syntax and
/// for UTF-8, matches. Where the two differ:
///   - \s, \w, \b, \h and the POSIX classes are Unicode's White_Space, Alphabetic | M | Nd | Pc, boundaries
///   of
///     those, and hexadecimal digits
///   - \p{...} takes long names of categories, and names of scripts mean the script, not its extensions
///   - [a[bc]] and [a&&b] are unions and intersections of classes
///   - (?m) lets . match a new line; X{n,m}+ and X{n}? are quantifiers of a quantified X
/// https://github.com/kkos/oniguruma/blob/master/doc/RE
TranslatedExpression translate_expression(std::string_view expression);

}  // namespace caldera::detail
