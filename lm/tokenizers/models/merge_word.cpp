#include "lm/tokenizers/models/merge_word.h"

#include <algorithm>
#include <array>
#include <climits>
#include <span>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

constexpr std::int32_t kNone = -1;
/// Up to this length, looking at every pair for each merge is quicker than keeping them in order.
constexpr std::size_t kShortWord = 16;
constexpr std::size_t kMaxKeptSymbols = 1 << 16;
/// Symbols of a long word that are merged at a time: what is worked on fits into a core's first cache.
constexpr std::size_t kWindow = 1024;
/// Symbols before a window's end whose tokens what follows may well change.
constexpr std::size_t kMargin = 128;

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

/// A word of at most kWindow symbols. The ranks of its pairs are side by side in blocks, whose lowest ones
/// are kept: to find the lowest of all is to look at those and at one block, without a queue to keep in
/// order.
class BlockedWord {
 public:
  BlockedWord(const MergeTable& merges, std::span<const std::int32_t> ids)
      : merges_(merges), count_(static_cast<std::int32_t>(ids.size())) {
    std::ranges::copy(ids, ids_.begin());
    blocks_ = (ids.size() + kBlock - 1) / kBlock;
    std::fill_n(ranks_.begin() + count_ - 1, blocks_ * kBlock - ids.size() + 1, INT_MAX);
    for (std::int32_t i = 0; i < count_; ++i) {
      const auto index = static_cast<std::size_t>(i);
      previous_[index] = static_cast<std::int16_t>(i - 1);
      next_[index] = static_cast<std::int16_t>(i + 1);
      if (i + 1 < count_) look_up(i, i + 1);
    }
    lowest_.fill(INT_MAX);
    for (std::size_t block = 0; block < blocks_; ++block) refresh(block);
  }

  void merge() {
    for (;;) {
      const std::int32_t lowest = blocks_ == 1 ? lowest_[0] : lowest_of(lowest_.data());
      if (lowest == INT_MAX) return;
      std::size_t block = 0;
      while (lowest_[block] != lowest) ++block;
      std::size_t left = block * kBlock;
      while (ranks_[left] != lowest) ++left;
      join(static_cast<std::int32_t>(left), block);
    }
  }

  template <typename Visit>
  void for_each_token(Visit&& visit) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_); i = static_cast<std::size_t>(next_[i])) {
      visit(ids_[i], i);
    }
  }

 private:
  static constexpr std::size_t kBlock = 32;
  static constexpr std::size_t kBlocks = kWindow / kBlock;
  static_assert(kBlocks == kBlock, "lowest_of looks at the blocks as at a block");

  static std::int32_t lowest_of(const std::int32_t* ranks) {
    std::int32_t lowest = ranks[0];
    for (std::size_t i = 1; i < kBlock; ++i) lowest = std::min(lowest, ranks[i]);
    return lowest;
  }
  void refresh(std::size_t block) { lowest_[block] = lowest_of(ranks_.data() + block * kBlock); }

  void look_up(std::int32_t left, std::int32_t right) {
    const auto i = static_cast<std::size_t>(left);
    const Merge* merge = merges_.find(ids_[i], ids_[static_cast<std::size_t>(right)]);
    ranks_[i] = merge == nullptr ? INT_MAX : merge->rank;
    if (merge != nullptr) merged_[i] = merge->id;
  }

  void join(std::int32_t left, std::size_t block) {
    const auto l = static_cast<std::size_t>(left);
    const auto right = static_cast<std::size_t>(next_[l]);
    const std::int32_t after = next_[right];
    const std::int32_t before = previous_[l];
    ids_[l] = merged_[l];
    next_[l] = static_cast<std::int16_t>(after);
    ranks_[l] = ranks_[right] = INT_MAX;
    if (after < count_) {
      previous_[static_cast<std::size_t>(after)] = static_cast<std::int16_t>(left);
      look_up(left, after);
    }
    if (before >= 0) {
      look_up(before, left);
      if (static_cast<std::size_t>(before) / kBlock != block)
        refresh(static_cast<std::size_t>(before) / kBlock);
    }
    if (right / kBlock != block) refresh(right / kBlock);
    refresh(block);
  }

  const MergeTable& merges_;
  std::int32_t count_;
  std::size_t blocks_;
  std::array<std::int32_t, kBlocks> lowest_;  ///< rank of each block
  // Only as much of these is written and read as the word is long.
  std::array<std::int32_t, kWindow> ids_;
  std::array<std::int32_t, kWindow> ranks_;   ///< of the pair that begins here; INT_MAX where none may merge
  std::array<std::int32_t, kWindow> merged_;  ///< what that pair joins to
  std::array<std::int16_t, kWindow> previous_;
  std::array<std::int16_t, kWindow> next_;
};

/// What merge_long works in: kept for the next word, unless it has grown large.
struct Workspace {
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<std::int32_t> tokens;
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

  /// Calls `visit(id, begin)` for each token that is left; its first symbol was at `begin`.
  template <typename Visit>
  void for_each_token(Visit&& visit) {
    for (std::int32_t i = 0; i != kNone; i = at(i).next) visit(at(i).id, static_cast<std::size_t>(i));
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

/// Merges a long word a window at a time, which gives exactly what merging all of it at once does.
///
/// Merging is local: a row of tokens is what a text merges to if, and only if, each two neighbours of it are
/// what their own text merges to. (Merges go by rank, then place. As long as no merge crosses a bound between
/// tokens, those on both sides of it happen in the order in which they happen without the rest of the text,
/// so the first one to cross a bound would also cross it where the two neighbours stand alone, and the other
/// way round.) So two windows, the second of which begins with a token of the first, join at that token if
/// the second leaves it as it is. Where it does not, the first window was too small, and is merged again
/// twice as large.
class WindowedWord {
 public:
  WindowedWord(const MergeTable& merges, std::span<const std::int32_t> symbols, Workspace& work)
      : merges_(merges), symbols_(symbols), work_(work) {}

  void merge() {
    std::size_t spent = 0;
    while (!done_) {
      Window& window = windows_.back();
      // Whoever makes windows disagree again and again pays no more than a few times over.
      if (spent > 4 * symbols_.size()) window = {0, 0, kNone, 0, symbols_.size()};
      spent += window.size;
      if (!merge_window(window)) {
        if (windows_.size() > 1) windows_.pop_back();
        windows_.back().size *= 2;
      }
    }
  }

  std::span<const std::int32_t> tokens() const { return tokens_; }

 private:
  struct Window {
    std::size_t begin = 0;
    std::size_t tokens = 0;         ///< written before it
    std::int32_t first = kNone;     ///< the token that it must begin with
    std::size_t first_symbols = 0;  ///< how many symbols that one has
    std::size_t size = kWindow;
  };

  /// Returns false where the window does not fit the one before, or has no token that is safe from its end.
  bool merge_window(const Window window) {
    const std::size_t size = std::min(window.size, symbols_.size() - window.begin);
    const auto symbols = symbols_.subspan(window.begin, size);
    tokens_.resize(window.tokens);
    if (size <= kWindow) {
      BlockedWord word(merges_, symbols);
      word.merge();
      return take_tokens(word, window, size);
    }
    LongWord word(merges_, symbols, work_);
    word.merge();
    return take_tokens(word, window, size);
  }

  template <typename Word>
  bool take_tokens(Word& word, const Window& window, std::size_t size) {
    Window next;
    std::size_t first_end = size;  // of the first token
    std::size_t next_end = size;   // of the token that the next window begins with
    word.for_each_token([&](std::int32_t id, std::size_t begin) {
      if (tokens_.size() == window.tokens + 1) first_end = begin;
      if (next.begin != 0 && tokens_.size() == next.tokens + 1) next_end = begin;
      if (begin > 0 && (next.begin == 0 || begin + kMargin <= size)) {
        next.begin = begin;
        next.tokens = tokens_.size();
        next.first = id;
        next_end = size;
      }
      tokens_.push_back(id);
    });
    if (window.first != kNone &&
        (tokens_[window.tokens] != window.first || first_end != window.first_symbols)) {
      return false;
    }
    done_ = window.begin + size == symbols_.size();
    if (done_) return true;
    if (next.begin == 0) return false;
    tokens_.resize(next.tokens);
    next.first_symbols = next_end - next.begin;
    next.begin += window.begin;
    windows_.push_back(next);
    return true;
  }

  const MergeTable& merges_;
  std::span<const std::int32_t> symbols_;
  Workspace& work_;
  std::vector<std::int32_t>& tokens_ = work_.tokens;
  std::vector<Window> windows_ = {Window{}};
  bool done_ = false;
};

std::size_t merge_long(const MergeTable& merges, std::span<std::int32_t> symbols) {
  thread_local Workspace work;
  WindowedWord word(merges, symbols, work);
  word.merge();
  const auto tokens = word.tokens();
  std::ranges::copy(tokens, symbols.begin());
  const std::size_t count = tokens.size();
  if (symbols.size() > kMaxKeptSymbols) work = {};
  return count;
}

}  // namespace

void merge_word(const MergeTable& merges, std::vector<std::int32_t>& symbols, std::size_t begin) {
  const auto word = std::span(symbols).subspan(begin);
  if (word.size() < 2) return;
  if (word.size() > INT_MAX) throw ValueError("encode: a text of more than 2^31 characters; split it");
  std::size_t count = 0;
  if (word.size() <= kShortWord) {
    count = merge_short(merges, word);
  } else if (word.size() <= kWindow) {
    BlockedWord blocked(merges, word);
    blocked.merge();
    blocked.for_each_token([&](std::int32_t id, std::size_t) { word[count++] = id; });
  } else {
    count = merge_long(merges, word);
  }
  symbols.resize(begin + count);
}

}  // namespace caldera::detail
