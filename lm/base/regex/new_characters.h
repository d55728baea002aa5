// Characters that PCRE2's tables do not know yet. Private to lm/.
#pragma once

#include <string>
#include <string_view>

namespace caldera::detail {

/// Returns a text in which letters and numbers of Unicode 15, 15.1 and 16 are others of the same category and
/// of as many bytes, which Unicode 14 has: the tables of PCRE2 10.42. `changed` keeps it; a text without such
/// characters is returned as it is.
std::string_view with_known_characters(std::string_view text, std::string& changed);

}  // namespace caldera::detail
