#include "lm/base/json_nesting.h"

namespace caldera::detail {
namespace {

/// Calls visit(depth, end) behind each bracket outside of strings, until it returns false.
template <typename Visit>
void walk_brackets(std::string_view text, const Visit& visit) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (!visit(++depth, i + 1)) return;
    } else if (c == ']' || c == '}') {
      if (!visit(--depth, i + 1)) return;
    }
  }
}

}  // namespace

bool nests_deeper(std::string_view text, int most) {
  bool deeper = false;
  walk_brackets(text, [&](int depth, std::size_t) { return !(deeper = depth > most); });
  return deeper;
}

std::size_t json_end(std::string_view text, int most) {
  if (!text.starts_with('{') && !text.starts_with('[')) return std::string_view::npos;
  std::size_t end = std::string_view::npos;
  walk_brackets(text, [&](int depth, std::size_t behind) {
    if (depth == 0) end = behind;
    return depth > 0 && depth <= most;
  });
  return end;
}

}  // namespace caldera::detail
