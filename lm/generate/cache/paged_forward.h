// PagedForward: feeds tokens of many texts to a model, over a paged cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "lm/adapters/adapter_bank.h"
#include "lm/generate/cache/page_store.h"
#include "lm/models/causal_lm.h"
#include "lm/nn/caches/paged_kv_cache.h"

namespace caldera {

/// Says how large a paged cache is to be.
struct PagingOptions {
  std::int64_t positions = 0;  ///< of layers without a window, all texts together
  std::int64_t context = 0;    ///< positions of one text
  std::int64_t texts = 1;      ///< at a time
  std::int64_t chunk = 512;    ///< tokens of one text in one call
  bool reuse = true;           ///< see PageStore
};

/// One text's share of a call: `ids` stand at `position` and on, for which the text has pages.
struct PagedRow {
  std::span<const std::int32_t> ids;
  std::int64_t position = 0;
  const PageStore::Text* text = nullptr;
  std::int32_t adapter = 0;      ///< slot of the bank; 0: none
  std::int64_t text_length = 0;  ///< see TokenPositions::longest
};

/// A model, its paged cache, and who has which page of that. Calls are filled up to a few shapes, so that
/// there are few plans.
class PagedForward {
 public:
  static constexpr std::int64_t kPagePositions = 16;
  /// Bounds what feed_scored() takes: logits of a whole piece would be hundreds of megabytes.
  static constexpr std::int64_t kScoredPiece = 64;

  /// Takes the cache's memory.
  PagedForward(CausalLM& model, const PagingOptions& options);

  PageStore& store() { return store_; }
  const PageStore& store() const { return store_; }
  /// Forgets what was computed with the model as it was: prefixes, and traces, which have its weights.
  void forget();
  /// Sets where the adapters of rows are; null while there are none. Kept as a reference.
  void set_adapters(AdapterBank* bank) { bank_ = bank; }
  std::int64_t cache_bytes() const { return cache_.bytes(); }

  /// Returns how many of `tokens` that wait are to be fed in one call, which is filled up to that number or a
  /// larger one.
  std::int64_t piece_of(std::int64_t tokens) const;
  /// Logits (rows, vocabulary), f32, after the last id of each row, or with `choose` the most likely tokens
  /// (rows, 1): to be evaluated together with state(), before anything else is fed. Rows of the result beyond
  /// the given ones mean nothing. Throws ValueError for rows of several text lengths, unless each token is
  /// the last of its text. Calls of one token a row, without adapters, replay a trace, and are evaluated; see
  /// TokenStep.
  LazyTensor feed(std::span<const PagedRow> rows, bool choose = false);
  /// Logits (rows, length, vocabulary) after every id, fed likewise, where what is behind a row's own ids
  /// means nothing. Rows have tokens that may be forgotten again: they are written over.
  LazyTensor feed_drafts(std::span<const PagedRow> rows);
  /// Logits (length, vocabulary) after every id of one row, kScoredPiece of them at most, fed as by feed();
  /// what is behind them means nothing.
  LazyTensor feed_scored(const PagedRow& row);
  std::vector<LazyTensor> state() const { return cache_.state(); }

  /// Whether some layers have a window, and so give pages back while the text goes on.
  bool has_windows() const;
  /// Whether keys and values of `count` positions of a text are there in all layers.
  bool has_rows(const PageStore::Text& text, std::int64_t begin, std::int64_t count) const;
  /// Copies keys and values of `count` positions of a text to the host, or writes them, where the text has
  /// pages for them.
  std::vector<std::byte> rows(const PageStore::Text& text, std::int64_t begin, std::int64_t count) const;
  void set_rows(const PageStore::Text& text, std::int64_t begin, std::int64_t count,
                std::span<const std::byte> bytes);
  std::size_t row_bytes() const { return cache_.row_bytes(); }

  /// Bytes of keys and values that one position takes in layers without a window.
  static std::int64_t bytes_per_position(const CausalLM& model);

 private:
  PagedKVCache::GroupSlots slots_of(const PageStore::Text& text, std::int64_t begin,
                                    std::int64_t count) const;
  std::int64_t padded_length(std::int64_t length) const;
  /// Hidden states (batch, length, hidden) of rows filled up to `length`.
  LazyTensor hidden_states(std::span<const PagedRow> rows, std::int64_t batch, std::int64_t length);
  void select_adapters(std::span<const PagedRow> rows, std::int64_t batch);
  LazyTensor feed_tokens(std::span<const PagedRow> rows, std::int64_t batch, bool choose);
  PagedCall call_for(std::span<const PagedRow> rows, std::int64_t batch, std::int64_t length) const;

  CausalLM& model_;
  AdapterBank* bank_ = nullptr;
  std::int64_t chunk_;
  PagedKVCache cache_;
  PageStore store_;
  /// Steps of one token a row, by their shapes and whether they choose.
  std::map<std::pair<PagedKVCache::CallShapes, bool>, VectorFunction> steps_;
  bool is_traced_ = true;
};

}  // namespace caldera
