// ByteParts: a tensor's bytes, which may lie in pieces. Private to lm/formats/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "lm/formats/weights/weight_target.h"

namespace caldera::detail {

/// The bytes of a row-major tensor as pieces of mapped files, in order: one piece where it is whole, as
/// tensors mostly do, or its rows, where a file has them in another order or in several tensors.
class ByteParts {
 public:
  ByteParts() = default;
  explicit ByteParts(std::span<const std::byte> whole) : parts_{whole}, size_(whole.size()) {}

  void add(std::span<const std::byte> part) {
    parts_.push_back(part);
    size_ += part.size();
  }
  std::size_t size() const { return size_; }

  /// Calls `use(bytes)` with all bytes in one run, which lives as long as the call: the file's own where
  /// there is one piece, so that they are read from it straight to where they go. Memory of the file's that
  /// was read is given back.
  template <class Use>
  auto with_bytes(const Use& use) const;
  /// Returns a tensor of the bytes: one that reads them in the file, where the target permits it, they are in
  /// one piece and lie as the type asks for, or a copy.
  LazyTensor tensor(DType dtype, const Shape& shape, WeightTarget target) const;

 private:
  std::vector<std::byte> joined() const;
  void release() const;

  std::vector<std::span<const std::byte>> parts_;
  std::size_t size_ = 0;
};

template <class Use>
auto ByteParts::with_bytes(const Use& use) const {
  struct Release {
    const ByteParts& parts;
    ~Release() { parts.release(); }
  } const release_after{*this};
  if (parts_.size() == 1) return use(parts_.front());
  const std::vector<std::byte> bytes = joined();
  return use(std::span<const std::byte>(bytes));
}

/// The bytes of `whole`, `rows` rows, with row order[i] in place i.
ByteParts rows_in_order(std::span<const std::byte> whole, const std::vector<std::int64_t>& order);

}  // namespace caldera::detail
