#include "lm/tokenizers/vocabulary/byte_trie.h"

#include <algorithm>

namespace caldera::detail {

ByteTrie::ByteTrie(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& e) { return e.first.empty(); });
  std::ranges::stable_sort(entries, {}, &Entry::first);
  struct Range {
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
    std::uint32_t node;
  };
  nodes_.emplace_back();
  std::vector<Range> open = {{0, entries.size(), 0, 0}};
  for (std::size_t next = 0; next < open.size(); ++next) {
    const Range range = open[next];
    std::size_t at = range.begin;
    for (; at < range.end && entries[at].first.size() == range.depth; ++at) {
      nodes_[range.node].value = entries[at].second;
    }
    nodes_[range.node].children = static_cast<std::uint32_t>(nodes_.size());
    while (at < range.end) {
      const char label = entries[at].first[range.depth];
      std::size_t end = at + 1;
      while (end < range.end && entries[end].first[range.depth] == label) ++end;
      open.push_back({at, end, range.depth + 1, static_cast<std::uint32_t>(nodes_.size())});
      nodes_.emplace_back().label = static_cast<std::uint8_t>(label);
      ++nodes_[range.node].count;
      at = end;
    }
  }
  for (std::uint32_t i = 0; i < nodes_[0].count; ++i) {
    first_[nodes_[nodes_[0].children + i].label] = nodes_[0].children + i;
  }
}

bool ByteTrie::step(Position& position, char c) const {
  const auto label = static_cast<std::uint8_t>(c);
  if (position.node == 0) {
    position.node = first_[label];
    return position.node != 0;
  }
  const Node& node = nodes_[position.node];
  const Node* begin = nodes_.data() + node.children;
  const Node* end = begin + node.count;
  const Node* found =
      node.count > 8
          ? std::lower_bound(begin, end, label, [](const Node& n, std::uint8_t l) { return n.label < l; })
          : std::find_if(begin, end, [&](const Node& n) { return n.label == label; });
  if (found == end || found->label != label) return false;
  position.node = static_cast<std::uint32_t>(found - nodes_.data());
  return true;
}

}  // namespace caldera::detail
