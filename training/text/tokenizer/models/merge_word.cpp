#include "training/text/tokenizer/models/merge_word.h"

#include <algorithm>
#include <array>
#include <climits>
#include <span>

#include "engine/tensor/error.h"

namespace caldera::detail {
namespace {

constexpr std::int32_t kNone = -1;
/// Up to this length, looking at every pair for each merge is quicker than keeping them in order.
constexpr std::size_t kShortWord = 40;
constexpr std::size_t kMaxKeptSymbols = 1 << 16;

/// A token in the word that is being merged: an element of a doubly linked list in one vector.
struct Symbol {
  std::int32_t id;
  std::int32_t previous;
  std::int32_t next;
};

/// A merge that was possible when it was queued. It is stale if either symbol has changed since.
struct Candidate {
  std::int32_t rank;
  std::int32_t position;  ///< of the left symbol
  std::int32_t left;
  std::int32_t right;
  std::int32_t merged;

  /// For a heap, whose first is its largest element: lowest rank first, then leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

/// Returns how many symbols are left; they are moved to the front.
std::size_t merge_short(const MergeTable& merges, std::span<std::int32_t> symbols) {
  std::array<Merge, kShortWord> next;  // with the symbol after it
  std::size_t count = symbols.size();
  const auto look_up = [&](std::size_t i) {
    const Merge* merge = merges.find(symbols[i], symbols[i + 1]);
    next[i] = merge == nullptr ? Merge{INT_MAX, kNone} : *merge;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (next[i].rank < next[best].rank) best = i;
    }
    if (next[best].id == kNone) break;
    symbols[best] = next[best].id;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      next[i] = next[i + 1];
    }
    --count;
    if (best + 1 < count) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  return count;
}

/// What merge_long works in: kept for the next word, unless it has grown large.
struct Workspace {
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

class LongWord {
 public:
  LongWord(const MergeTable& merges, std::span<const std::int32_t> ids, Workspace& work)
      : merges_(merges), symbols_(work.symbols), heap_(work.heap) {
    const auto count = static_cast<std::int32_t>(ids.size());
    symbols_.resize(ids.size());
    heap_.clear();
    for (std::int32_t i = 0; i < count; ++i) {
      at(i) = {ids[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : kNone};
    }
    for (std::int32_t i = 0; i + 1 < count; ++i) add_candidate(i, i + 1);
    std::make_heap(heap_.begin(), heap_.end());
  }

  void merge() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate best = heap_.back();
      heap_.pop_back();
      Symbol& left = at(best.position);
      // A symbol that was merged away has id kNone, so this also skips candidates that began at one.
      if (left.id != best.left || left.next == kNone || at(left.next).id != best.right) continue;
      Symbol& right = at(left.next);
      left.id = best.merged;
      left.next = right.next;
      right.id = kNone;
      if (left.next != kNone) {
        at(left.next).previous = best.position;
        push_candidate(best.position, left.next);
      }
      if (left.previous != kNone) push_candidate(left.previous, best.position);
    }
  }

  std::size_t write(std::span<std::int32_t> ids) {
    std::size_t count = 0;
    for (std::int32_t i = 0; i != kNone; i = at(i).next) ids[count++] = at(i).id;
    return count;
  }

 private:
  Symbol& at(std::int32_t i) { return symbols_[static_cast<std::size_t>(i)]; }
  bool add_candidate(std::int32_t left, std::int32_t right) {
    const Merge* merge = merges_.find(at(left).id, at(right).id);
    if (merge == nullptr) return false;
    heap_.push_back({merge->rank, left, at(left).id, at(right).id, merge->id});
    return true;
  }
  void push_candidate(std::int32_t left, std::int32_t right) {
    if (add_candidate(left, right)) std::push_heap(heap_.begin(), heap_.end());
  }

  const MergeTable& merges_;
  std::vector<Symbol>& symbols_;
  std::vector<Candidate>& heap_;
};

std::size_t merge_long(const MergeTable& merges, std::span<std::int32_t> symbols) {
  thread_local Workspace work;
  LongWord word(merges, symbols, work);
  word.merge();
  const std::size_t count = word.write(symbols);
  if (symbols.size() > kMaxKeptSymbols) work = {};
  return count;
}

}  // namespace

void merge_word(const MergeTable& merges, std::vector<std::int32_t>& symbols, std::size_t begin) {
  const auto word = std::span(symbols).subspan(begin);
  if (word.size() < 2) return;
  if (word.size() > INT_MAX) throw ValueError("encode: a text of more than 2^31 characters; split it");
  const bool is_short = word.size() <= kShortWord;
  symbols.resize(begin + (is_short ? merge_short(merges, word) : merge_long(merges, word)));
}

}  // namespace caldera::detail
