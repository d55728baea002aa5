#include "engine/tensor/shape.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/base/error.h"

namespace caldera {
namespace {

void check_rank(std::size_t rank) {
  if (rank > static_cast<std::size_t>(kMaxRank)) {
    throw ShapeError(fmt::format("a tensor has at most {} dimensions, {} were given", kMaxRank, rank));
  }
}

}  // namespace

Dims::Dims(std::span<const std::int64_t> values) {
  check_rank(values.size());
  std::copy(values.begin(), values.end(), values_.begin());
  rank_ = static_cast<std::int32_t>(values.size());
}

Dims Dims::filled(int rank, std::int64_t value) {
  check_rank(static_cast<std::size_t>(rank));
  Dims d;
  d.rank_ = rank;
  std::fill_n(d.values_.begin(), rank, value);
  return d;
}

void Dims::push_back(std::int64_t value) { insert(rank_, value); }

void Dims::insert(int at, std::int64_t value) {
  check_rank(static_cast<std::size_t>(rank_) + 1);
  std::copy_backward(values_.begin() + at, values_.begin() + rank_, values_.begin() + rank_ + 1);
  values_[static_cast<std::size_t>(at)] = value;
  ++rank_;
}

void Dims::erase(int at) {
  std::copy(values_.begin() + at + 1, values_.begin() + rank_, values_.begin() + at);
  --rank_;
}

bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::int64_t Shape::numel() const {
  std::int64_t n = 1;
  for (std::int64_t extent : *this) n *= extent;
  return n;
}

std::string Shape::to_string() const {
  std::string text = "(";
  for (int i = 0; i < rank(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
  return text + (rank() == 1 ? ",)" : ")");
}

Dims Shape::strides() const {
  Dims s = Dims::filled(rank(), 1);
  for (int i = rank() - 2; i >= 0; --i) s[i] = s[i + 1] * (*this)[i + 1];
  return s;
}

int Shape::normalize_axis(std::int64_t axis, const char* op) const {
  if (axis < -rank() || axis >= rank()) {
    throw ShapeError(fmt::format("{}: axis {} is out of range for shape {}", op, axis, to_string()));
  }
  return static_cast<int>(axis < 0 ? axis + rank() : axis);
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  Shape out(Dims::filled(std::max(a.rank(), b.rank()), 1));
  for (int i = 1; i <= out.rank(); ++i) {
    const std::int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1) {
      throw ShapeError(
          fmt::format("{}: shapes {} and {} do not broadcast", op, a.to_string(), b.to_string()));
    }
    out[out.rank() - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace caldera
