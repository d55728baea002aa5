// InternedShape: a shape as nodes have it, in 8 bytes. Most tensors share the shape of another: it is kept
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "engine/tensor/shape.h"

namespace caldera {

/// So many shapes are kept for all, and for as long as the process lives (about 8 MB). A shape that comes
/// later is kept by each who has it.
inline constexpr std::size_t kMostInternedShapes = std::size_t{1} << 16;

/// A constant shape. Thread-safe.
class InternedShape {
 public:
  /// The shape of a scalar.
  InternedShape() : bits_(scalar_bits()) {}
  InternedShape(const Shape& shape);
  InternedShape(const InternedShape& other) : bits_(other.bits_) {
    if (is_own()) bits_ = own(other.get());
  }
  InternedShape(InternedShape&& other) noexcept : bits_(std::exchange(other.bits_, 0)) {}
  InternedShape& operator=(InternedShape other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~InternedShape() {
    if (is_own()) delete &get();
  }

  const Shape& get() const { return *reinterpret_cast<const Shape*>(bits_ & ~kOwn); }
  operator const Shape&() const { return get(); }
  int rank() const { return get().rank(); }
  std::int64_t operator[](int axis) const { return get()[axis]; }
  std::int64_t back() const { return get().back(); }
  std::int64_t numel() const { return get().numel(); }
  std::span<const std::int64_t> span() const { return get().span(); }
  std::string to_string() const { return get().to_string(); }
  const std::int64_t* begin() const { return get().begin(); }
  const std::int64_t* end() const { return get().end(); }
  friend bool operator==(const InternedShape& a, const InternedShape& b) {
    return a.bits_ == b.bits_ || ((a.is_own() || b.is_own()) && a.get() == b.get());
  }
  friend bool operator==(const InternedShape& a, const Shape& b) { return a.get() == b; }
  /// Returns a word for hashes: shapes with equal words that mix the same are equal, in one process.
  std::uint64_t word() const {
    return is_own() ? static_cast<std::uint64_t>(get().rank()) : std::uint64_t{bits_};
  }
  template <class Hash>
  void mix_rest_into(Hash& hash) const {
    if (!is_own()) return;
    for (const std::int64_t extent : get()) hash.mix(static_cast<std::uint64_t>(extent));
  }

 private:
  static constexpr std::uintptr_t kOwn = 1;
  bool is_own() const { return (bits_ & kOwn) != 0; }
  static std::uintptr_t own(const Shape& shape);
  static std::uintptr_t scalar_bits();

  std::uintptr_t bits_;  // where the shape is; the lowest is set of one of this object's own
};

/// Counts the shapes that are kept for all.
std::size_t interned_shapes();

}  // namespace caldera
