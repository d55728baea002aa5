#include "engine/compile/fuse/window.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "engine/compile/program/limits.h"

namespace caldera {

namespace {

/// Exchanges rows and columns of a square of bits.
void transpose(std::array<std::uint64_t, 64>& rows) {
  std::uint64_t mask = 0x00000000ffffffffULL;
  for (unsigned step = 32; step != 0; step >>= 1U, mask ^= mask << step) {
    for (unsigned k = 0; k < 64; k = ((k | step) + 1) & ~step) {
      const std::uint64_t moved = (rows[k] >> step ^ rows[k | step]) & mask;
      rows[k] ^= moved << step;
      rows[k | step] ^= moved;
    }
  }
}

}  // namespace

template <class Visit>
void Window::for_each_group_before(Id draft, Visit visit) {
  const auto each = [&](Id read) {
    if (!drafts_.has_group(read)) return;
    const Id g = drafts_.group_of(read);
    if (g != draft && contains(g)) visit(g);
  };
  if (drafts_.has_barriers()) {
    drafts_.for_each_before_draft(draft, each);
    return;
  }
  const Draft& d = drafts_.known(draft);
  if (d.other != kNoRoot) drafts_.for_each_before(d.other, each);
  for (const Source& s : d.reads) each(s.root);
}

void Window::move_to(std::size_t begin, std::size_t end) {
  begin_ = begin;
  end_ = end;
  rows_ = followed_ = entered_ = 0;
  position_.resize(end - begin);
  for (Id draft = this->begin(); draft < this->end(); ++draft) {
    if (!drafts_.is_joined(draft)) position_[draft - begin_] = static_cast<std::uint32_t>(rows_++);
  }
  words_ = (rows_ + 63) / 64;
  covers_.assign(rows_ * words_, 0);
  covered_by_.assign(rows_ * words_, 0);
  dependent_.resize(words_);
}

void Window::enter(Id draft) {
  const std::size_t at = position(draft);
  follow(at / 64 * 64);
  Word* const own = row(covers_, at);
  for_each_group_before(draft, [&](Id g) {
    const Word* other = row(covers_, position(g));
    for (std::size_t w = 0; w < words_; ++w) own[w] |= other[w];
  });
  own[at / 64] |= Word{1} << (at % 64);
  entered_ = at + 1;
}

void Window::follow(std::size_t end) {
  for (; followed_ < end; followed_ += 64) {
    std::array<Word, 64> square{};
    for (std::size_t w = 0; w < words_; ++w) {
      Word any = 0;
      for (std::size_t k = 0; k < 64; ++k) any |= square[k] = covers_[(followed_ + k) * words_ + w];
      if (any == 0) continue;
      transpose(square);
      const std::size_t rows = std::min<std::size_t>(64, rows_ - w * 64);
      for (std::size_t k = 0; k < rows; ++k) covered_by_[(w * 64 + k) * words_ + followed_ / 64] |= square[k];
    }
  }
}

bool Window::leads(Id from, Id to) {
  bool found = false;
  for_each_group_before(to,
                        [&](Id g) { found = found || (g != from && covers(position(g), position(from))); });
  return found;
}

void Window::note_join(Id a, Id b) {
  const std::size_t at_a = position(a), at_b = position(b);
  // What depends on one half covers all that it covers: nothing is new but where the two differ.
  changed_.clear();
  for (std::size_t w = 0; w < words_; ++w) {
    const Word of_a = row(covers_, at_a)[w], of_b = row(covers_, at_b)[w];
    if (of_a != of_b) changed_.emplace_back(w, of_a | of_b);
  }
  const auto widen = [&](std::size_t at) {
    for (const auto& [w, both] : changed_) {
      Word& own = covers_[at * words_ + w];
      Word added = both & ~own;
      own |= added;
      if (at >= followed_) continue;
      for (; added != 0; added &= added - 1) {
        const auto what = w * 64 + static_cast<std::size_t>(std::countr_zero(added));
        covered_by_[what * words_ + at / 64] |= Word{1} << (at % 64);
      }
    }
  };
  // Before any is widened: that adds to the columns of a and b themselves.
  for (std::size_t w = 0; w < words_; ++w)
    dependent_[w] = row(covered_by_, at_a)[w] | row(covered_by_, at_b)[w];
  for (std::size_t w = 0; w < words_; ++w) {
    for (Word left = dependent_[w]; left != 0; left &= left - 1)
      widen(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  }
  for (std::size_t at = followed_; at < entered_; ++at) {
    if (covers(at, at_a) || covers(at, at_b)) widen(at);
  }
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
