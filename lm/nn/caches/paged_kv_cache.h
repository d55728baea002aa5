// PagedKVCache: keys and values of many sequences in pages of one memory (Kwon et al. 2023,
// "PagedAttention").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "lm/nn/caches/attention_cache.h"
#include "lm/nn/caches/cache_type.h"

namespace caldera {

/// Layers whose keys and values are kept alike, as they have one window.
struct PagedLayers {
  std::optional<std::int64_t> window;  ///< none: all positions are kept
  std::vector<std::int64_t> layers;
  std::int64_t pages = 0;  ///< page 0, which no sequence has, among them
};

/// Says where the tokens of one forward call stand, and where the keys that they look at are. Rows of a batch
/// are sequences, at positions of their own. A token of no sequence (padding) has position 0 and no_slot.
struct PagedCall {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::int64_t longest = 0;             ///< see TokenPositions
  std::vector<std::int32_t> positions;  ///< (batch, length)
  struct Layers {
    std::vector<std::int32_t> slots;  ///< (batch, length): page * page_positions + place within the page
    std::vector<std::int32_t> first;  ///< (batch): the position that the first page of the row begins with
    std::vector<std::int32_t> pages;  ///< (batch, n): of consecutive positions; 0 beyond the sequence's own
  };
  std::vector<Layers> groups;  ///< one for each of PagedKVCache::groups()
};

/// The memory of all layers, and the calls on it. Which sequence has which page is the caller's affair (see
/// PageStore in lm/generate/cache/). Shapes of a call are its batch, length and pages; everything else
/// is data, so calls of the same shapes have one plan. New keys are written in place (see KVCache).
class PagedKVCache final : public AttentionCache {
 public:
  /// Takes 2 * kv_heads * form.bytes() for each position of each layer's pages, now. Positions are below
  /// `max_positions`. Throws ValueError for an extent that is not positive, or groups that do not name every
  /// layer once.
  PagedKVCache(std::vector<PagedLayers> groups, std::int64_t kv_heads, const CacheForm& form,
               std::int64_t page_positions, std::int64_t max_positions, Device device);

  const std::vector<PagedLayers>& groups() const { return groups_; }
  std::int64_t page_positions() const { return page_positions_; }
  std::int64_t bytes() const;
  /// The slot to which tokens of no sequence are written: nowhere, as it is outside of every memory. Page 0
  /// stays zeros.
  static constexpr std::int32_t kNoSlot = -1;

  /// Says what the next forward call is. A call that was begun and not finished is forgotten. Throws
  /// ShapeError where its lists do not fit.
  void plan(const PagedCall& call);
  void begin(std::int64_t batch, std::int64_t length) override;
  TokenPositions positions() const override;
  AttendedKeys attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                        const AttentionForm& form) override;
  void finish() override;

  /// Holds the slots of some positions: a list for each group, all of one length.
  using GroupSlots = std::vector<std::vector<std::int32_t>>;
  /// Copies rows of every layer to the host: a layer's keys, its values, and so on.
  std::vector<std::byte> rows(const GroupSlots& slots) const;
  /// Writes what rows() gave, but for kNoSlot, and evaluates it.
  void set_rows(const GroupSlots& slots, std::span<const std::byte> bytes);
  /// Counts the bytes of one position.
  std::size_t row_bytes() const;

  /// Every buffer: what is to be evaluated with the logits of a call.
  std::vector<LazyTensor> state() const;

  /// Names what the graph of a call depends on, beside its data, i32 (n): a function that compiled() traces
  /// has the data and the buffers as arguments, and is another one for other shapes.
  struct CallShapes {
    std::int64_t batch = 0;
    std::int64_t length = 0;
    std::int64_t longest = 0;
    std::vector<std::int64_t> pages;  ///< of a row, in each group
    friend bool operator<(const CallShapes& a, const CallShapes& b) {
      return std::tie(a.batch, a.length, a.longest, a.pages) <
             std::tie(b.batch, b.length, b.longest, b.pages);
    }
  };
  static CallShapes shapes_of(const PagedCall& call);
  LazyTensor data_of(const PagedCall& call) const;
  /// Returns a cache for one call inside of that function, of the stand-ins for data and buffers.
  PagedKVCache traced(const CallShapes& call, const LazyTensor& data,
                      std::span<const LazyTensor> buffers) const;
  /// Hands out the buffers, in the order of state(), so that nobody else holds them; set_buffers() gives the
  /// cache others. In between it may be traced(), and nothing else.
  std::vector<LazyTensor> give_buffers();
  void set_buffers(std::span<const LazyTensor> buffers);

 private:
  PagedKVCache(const CacheForm& form, Device device) : device_(device), form_(form) {}
  void locate(const CallShapes& call, const LazyTensor& data);
  std::vector<std::int32_t> rows_of_slots(std::span<const std::int32_t> slots, std::int64_t length) const;
  std::vector<LazyTensor> row_numbers(const GroupSlots& slots) const;

  /// The data of the call, for the layers of a group.
  struct Located {
    LazyTensor slots;      // (batch * heads * length): rows
    LazyTensor rows;       // (batch, heads, keys): row 0, which is zeros, behind a sequence's own positions
    LazyTensor positions;  // (batch, 1, 1, keys)
  };

  std::vector<PagedLayers> groups_;
  std::vector<std::size_t> group_of_;  // of each layer
  std::int64_t page_positions_ = 0;
  std::int64_t max_positions_ = 0;
  Device device_;
  CacheForm form_;
  // Tables (pages * heads * positions of a page, form_.width()), so that a head's keys follow one another;
  // row 0 is zeros.
  std::vector<LazyTensor> keys_;
  std::vector<LazyTensor> values_;
  std::int64_t heads_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t length_ = 0;
  std::int64_t longest_ = 0;
  // Hold what keys_ and values_ were before the call in progress; empty between calls.
  std::vector<LazyTensor> keys_before_, values_before_;
  LazyTensor positions_;  // (batch, length)
  LazyTensor last_;       // (batch, 1): the last position of each row's queries
  std::vector<Located> located_;
};

}  // namespace caldera
