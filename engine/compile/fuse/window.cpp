#include "engine/compile/fuse/window.h"

#include <algorithm>
#include <cstdint>

#include "engine/compile/program/limits.h"

namespace caldera {

void Window::enter(Id draft) {
  BitSet& covers = covers_[position(draft)];
  drafts_.for_each_before_draft(draft, [&](Id read) {
    if (!drafts_.has_group(read)) return;
    const Id g = drafts_.group_of(read);
    if (contains(g) && g != draft) covers.add(covers_[position(g)]);
  });
  covers.set(position(draft));
  entered_.push_back(draft);
}

bool Window::leads(Id from, Id to) const {
  bool found = false;
  drafts_.for_each_before_draft(to, [&](Id read) {
    if (found || !drafts_.has_group(read)) return;
    const Id g = drafts_.group_of(read);
    found = g != from && g != to && contains(g) && covers_[position(g)].test(position(from));
  });
  return found;
}

void Window::note_join(Id a, Id b) {
  BitSet both = covers_[position(a)];
  both.add(covers_[position(b)]);
  for (Id d : entered_) {
    BitSet& cover = covers_[position(d)];
    if (cover.test(position(a)) || cover.test(position(b))) cover.add(both);
  }
  covers_[position(a)] = both;
  covers_[position(b)] = both;
}

std::vector<std::size_t> window_ends(const Drafts& drafts) {
  const std::size_t count = drafts.size();
  std::vector<std::size_t> ends;
  if (count > kMaxWindow) {
    std::vector<std::int32_t> change(count + 1, 0);  // of the number of values that cross a place
    for (Drafts::Id i = 0; i < drafts.root_count(); ++i) {
      if (!drafts.has_group(i)) continue;
      Drafts::Id last = drafts.group_of(i);
      for (Drafts::Id reader : drafts.readers(i)) {
        if (drafts.has_group(reader)) last = std::max(last, drafts.group_of(reader));
      }
      if (last <= drafts.group_of(i)) continue;
      ++change[drafts.group_of(i) + std::size_t{1}];
      --change[last + std::size_t{1}];
    }
    for (std::size_t i = 1; i <= count; ++i) change[i] += change[i - 1];
    for (std::size_t begin = 0; begin + kMaxWindow < count; begin = ends.back()) {
      std::size_t best = begin + kMaxWindow;
      for (std::size_t at = best; at > begin + kMaxWindow * 3 / 4; --at) {
        if (change[at] < change[best]) best = at;
      }
      ends.push_back(best);
    }
  }
  ends.push_back(count);
  return ends;
}

}  // namespace caldera
