// Tells what the text between the quotes of a string literal means.
#pragma once

#include <string>
#include <string_view>

namespace caldera::chat {

/// With Python's escapes resolved: \n \\ \x41 \u00e9 \U0001F600 \N{BULLET} \101 and so on; others stay as
/// they are. Throws a Fault for those that are cut off or stand for no character.
std::string unescaped(std::string_view literal);

}  // namespace caldera::chat
