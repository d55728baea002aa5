// Tells how deep JSON text nests, without parsing it.
#pragma once

#include <cstddef>
#include <string_view>

namespace caldera::detail {

/// Whether brackets outside of strings nest deeper than `most`. Needs no valid JSON: nlohmann's copy, dump
/// and destruction recurse, so that the depth is checked before anything is built.
bool nests_deeper(std::string_view text, int most);

/// Finds where the object or list ends that `text` begins with, its last bracket included; npos where it
/// begins with none, does not end, or nests deeper than `most`.
std::size_t json_end(std::string_view text, int most);

}  // namespace caldera::detail
