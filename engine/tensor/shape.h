// Shape: the extents of a tensor. A small value type without heap memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace caldera {

/// Highest number of dimensions a tensor may have.
inline constexpr int kMaxRank = 12;

/// A short list of integers with inline storage: extents, strides, axes.
class Dims {
 public:
  constexpr Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  /// Throws ShapeError above kMaxRank values.
  explicit Dims(std::span<const std::int64_t> values);
  static Dims filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](int i) const { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](int i) { return values_[static_cast<std::size_t>(i)]; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + rank_; }
  std::int64_t back() const { return values_[static_cast<std::size_t>(rank_ - 1)]; }
  std::span<const std::int64_t> span() const { return {values_.data(), static_cast<std::size_t>(rank_)}; }
  /// Throws ShapeError above kMaxRank values.
  void push_back(std::int64_t value);
  void insert(int at, std::int64_t value);
  void erase(int at);

  friend bool operator==(const Dims& a, const Dims& b);

 private:
  std::array<std::int64_t, kMaxRank> values_{};
  std::int32_t rank_ = 0;
};

/// Extents of a tensor, outermost first. Rank 0 is a scalar. An extent may be 0.
class Shape : public Dims {
 public:
  using Dims::Dims;
  constexpr Shape() = default;
  explicit Shape(const Dims& d) : Dims(d) {}

  /// Number of elements: the product of the extents, 1 for a scalar.
  std::int64_t numel() const;
  /// "(2, 3)" as NumPy prints it.
  std::string to_string() const;
  /// Row-major strides, in elements.
  Dims strides() const;
  /// `axis` in [-rank, rank) as an index in [0, rank). Throws ShapeError naming `op`.
  int normalize_axis(std::int64_t axis, const char* op) const;
};

/// The shape both operands broadcast to (Array API rules). Throws ShapeError naming `op` and both shapes.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace caldera
