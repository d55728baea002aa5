// AttentionCache: what a forward call knows of the sequences that its tokens belong to.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"
#include "lm/nn/attention_form.h"

namespace caldera {

/// The positions of the tokens (batch, length) of a forward call in their sequences.
struct TokenPositions {
  std::int64_t length = 0;
  std::int64_t first = 0;  ///< where `rows` is undefined, token t of every row has position first + t
  LazyTensor rows = {};    ///< i32 (batch, length), on the device
  std::int64_t reach = 0;  ///< positions are below it; tables that reach so far need not grow
  /// A token at position p is rotated as in a sequence of max(longest, p + 1) tokens: the frequencies of some
  /// rotary embeddings depend on it. 0: each as the last token of its sequence.
  std::int64_t longest = 0;
};

/// Holds what the queries of a call attend to: keys and values (B, K, S, D).
struct AttendedKeys {
  LazyTensor keys;
  LazyTensor values;
  /// Boolean, broadcasts to (B, 1, T, S). Undefined: that of the form, with query 0 at key `offset`.
  LazyTensor mask = {};
  std::int64_t offset = 0;
  bool sink_key = false;  ///< whether key 0 is the key of zeros (AttentionOptions::sink_key)
};

/// Positions, earlier keys and masks of a forward call: of one sequence that goes on (KVCache), of rows of a
/// batch that each go on with a sequence of their own (PagedKVCache), of several sequences packed into a row
/// (PackedTexts). Models know it by this interface alone. A call is begin(), attended() for every layer, then
/// finish().
class AttentionCache {
 public:
  virtual ~AttentionCache() = default;

  /// Begins a call over ids (batch, length). Throws ShapeError or ValueError where they do not fit; nothing
  /// is changed then.
  virtual void begin(std::int64_t batch, std::int64_t length) = 0;
  /// Returns the positions of the call that has begun.
  virtual TokenPositions positions() const = 0;
  /// Takes in k and v (batch, heads, length, head_dim) of one layer, and gives what its queries attend to.
  /// With sinks a key of zeros before the others is welcome (AttendedKeys::sink_key). Throws ShapeError
  /// unless they fit.
  virtual AttendedKeys attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                                const AttentionForm& form) = 0;
  virtual void finish() = 0;
  /// Whether attended() keeps nothing, and gives the same function of k and v for layers whose form is the
  /// same.
  virtual bool keeps_nothing() const { return false; }

 protected:
  AttentionCache() = default;
  AttentionCache(const AttentionCache&) = default;
  AttentionCache& operator=(const AttentionCache&) = default;
};

/// The mask of queries and keys whose positions are given, i32 tensors that broadcast to one another.
LazyTensor visible_by_position(const LazyTensor& queries, const LazyTensor& keys, const AttentionForm& form);

}  // namespace caldera
