#include "lm/tokenizers/vocabulary/word_cuts.h"

#include <algorithm>

#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

}  // namespace

WordCuts::WordCuts(const TokenTable& tokens) : usable_(tokens.find(kMark).has_value()) {
  if (!usable_) return;
  joined_.push_back(first_character(kMark).value);
  tokens.for_each([&](std::string_view text, std::int32_t) {
    for (auto at = text.find(kMark, 1); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
      joined_.push_back(last_character(text.substr(0, at)).value);
    }
  });
  std::ranges::sort(joined_);
  const auto repeated = std::unique(joined_.begin(), joined_.end());
  joined_.erase(repeated, joined_.end());
}

std::size_t WordCuts::first_part(std::string_view text) const {
  if (!usable_) return text.size();
  for (auto at = text.find(kMark, 1); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
    if (!std::ranges::binary_search(joined_, last_character(text.substr(0, at)).value)) return at;
  }
  return text.size();
}

}  // namespace caldera::detail
