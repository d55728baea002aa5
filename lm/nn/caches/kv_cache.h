// KVCache: keys and values of the positions seen so far, for decoding one token at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "lm/nn/caches/attention_cache.h"
#include "lm/nn/caches/cache_type.h"

namespace caldera {

/// Keys and values of every layer in buffers of one capacity, so that every decoding step has the same shapes
/// and replays one plan until the cache grows: positions enter as plan arguments. A forward call of a model
/// writes the cache lazily; evaluate `state()` together with the logits in one eval, or the unevaluated
/// history grows with every step. The new rows are then written into the buffers themselves, unless somebody
/// else holds one of them (a copy of what keys() gives): that one is copied first.
class KVCache final : public AttentionCache {
 public:
  /// Buffers (batch, kv_heads, capacity, form.width()) of zeros. Throws ValueError for an extent that is not
  /// positive.
  KVCache(std::int64_t layers, std::int64_t batch, std::int64_t kv_heads, std::int64_t capacity,
          const CacheForm& form, Device device);
  /// Keeps heads of `head_dim` numbers in `dtype`.
  KVCache(std::int64_t layers, std::int64_t batch, std::int64_t kv_heads, std::int64_t capacity,
          std::int64_t head_dim, DType dtype, Device device)
      : KVCache(layers, batch, kv_heads, capacity, CacheForm(CacheType::model, dtype, head_dim), device) {}

  std::int64_t layers() const { return static_cast<std::int64_t>(keys_.size()); }
  std::int64_t batch() const { return keys_.front().shape()[0]; }
  std::int64_t capacity() const { return keys_.front().shape()[2]; }
  /// Positions written so far; the next token has this position.
  std::int64_t position() const { return position_; }

  /// Makes room for `capacity` positions, and keeps what is written. Between forward calls only. Throws
  /// ValueError for less than capacity().
  void grow(std::int64_t capacity);

  /// Starts a forward call over `length` new positions. Throws ValueError when they do not fit any more; the
  /// cache is then unchanged.
  void begin(std::int64_t length);
  void begin(std::int64_t batch, std::int64_t length) override;
  TokenPositions positions() const override;
  /// Says that the tokens of the calls from now on belong to a sequence of so many (TokenPositions::longest),
  /// of which they need not be the last: for a sequence that is fed in pieces. Nothing: a sequence ends with
  /// its call.
  void set_text_length(std::optional<std::int64_t> tokens) { text_length_ = tokens; }
  /// Writes, and gives the buffers, or, of a layer with a window that is smaller, the part of them that a
  /// query of the call may look at: where that begins is an argument of the plan.
  AttendedKeys attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                        const AttentionForm& form) override;
  /// Writes k and v (batch, kv_heads, length, head_dim) of one layer at [position, position + length). Throws
  /// ShapeError unless they fit the cache.
  void write(std::int64_t layer, const LazyTensor& k, const LazyTensor& v);
  /// Ends the call: position advances by its length.
  void finish() override;

  /// The whole buffers (batch, kv_heads, capacity, form.width()); what is beyond the positions written is to
  /// be masked.
  const LazyTensor& keys(std::int64_t layer) const { return keys_[static_cast<std::size_t>(layer)]; }
  const LazyTensor& values(std::int64_t layer) const { return values_[static_cast<std::size_t>(layer)]; }

  /// Every buffer: what is to be evaluated with the logits.
  std::vector<LazyTensor> state() const;

  /// Returns the numbers that the position of a call of one token decides, for layers with these windows:
  /// arguments of a function that compiled() traces, together with the buffers.
  std::vector<LazyTensor> step_numbers(std::span<const std::int64_t> windows) const;
  /// Returns a cache for one such call inside of that function, of the stand-ins for step_numbers() and the
  /// buffers. Tokens are rotated as the last of their sequence.
  KVCache traced(std::span<const std::int64_t> windows, std::span<const LazyTensor> numbers,
                 std::span<const LazyTensor> buffers) const;
  /// Hands out the buffers, in the order of state(), so that nobody else holds them; set_buffers() gives the
  /// cache others. In between there is no cache.
  std::vector<LazyTensor> give_buffers();
  void set_buffers(std::span<const LazyTensor> buffers);
  /// Forgets everything from `position` on (0: everything). Throws ValueError beyond what was written.
  void truncate(std::int64_t position);
  void clear() { truncate(0); }

 private:
  /// Says where a call of one token stands, by numbers that a trace has as arguments.
  struct StepNumbers {
    LazyTensor position;
    struct Window {
      std::int64_t size = 0;
      LazyTensor first;  // of the keys that are looked at
      LazyTensor last;   // of them, counted from there
    };
    std::vector<Window> windows;
  };

  explicit KVCache(const CacheForm& form) : form_(form) {}
  LazyTensor written(const LazyTensor& buffer, const LazyTensor& update) const;
  AttendedKeys attended_in_step(LazyTensor keys, LazyTensor values, std::optional<std::int64_t> window) const;
  LazyTensor part(const LazyTensor& buffer, std::int64_t span, const LazyTensor& first) const;
  LazyTensor numbers_of(const LazyTensor& kept) const;

  CacheForm form_;
  std::vector<LazyTensor> keys_;
  std::vector<LazyTensor> values_;
  std::int64_t position_ = 0;
  std::int64_t length_ = 0;  // of the forward call in progress
  std::optional<std::int64_t> text_length_;
  std::optional<StepNumbers> step_;  // of a cache of stand-ins
};

}  // namespace caldera
