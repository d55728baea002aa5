#include "lm/generate/grammar/token_trie.h"

#include <algorithm>
#include <numeric>

namespace caldera::grammar {

TokenTrie::TokenTrie(const std::vector<std::string>& token_bytes) : bytes_(token_bytes) {
  constexpr std::size_t kLongest = 65535;
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    if (!bytes_[i].empty() && bytes_[i].size() <= kLongest) order.push_back(static_cast<std::int32_t>(i));
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const int compared = bytes(a).compare(bytes(b));
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<std::uint32_t> path;  // nodes of the text before
  const auto close = [&](std::size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  std::string before;
  for (const std::int32_t id : order) {
    const std::string& text = bytes(id);
    const auto [a, b] = std::mismatch(before.begin(), before.end(), text.begin(), text.end());
    close(static_cast<std::size_t>(a - before.begin()));
    for (std::size_t depth = path.size(); depth < text.size(); ++depth) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({static_cast<std::uint8_t>(text[depth]), static_cast<std::uint16_t>(depth), 0,
                        static_cast<std::uint32_t>(tokens_.size()), 0});
    }
    Node& last = nodes_[path.back()];
    if (last.token_count++ == 0) last.tokens = static_cast<std::uint32_t>(tokens_.size());
    tokens_.push_back(id);
    max_depth_ = std::max(max_depth_, text.size());
    before = text;
  }
  close(0);
}

}  // namespace caldera::grammar
