// Evenly spaced numbers and the identity matrix, generated where they are read, never stored. Part of
// ops/ops.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "engine/graph/lazy_tensor.h"

namespace caldera {
namespace detail {

LazyTensor arange(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype,
                  std::optional<Device> device);
LazyTensor arange(double start, double stop, double step, DType dtype, std::optional<Device> device);

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

}  // namespace detail

/// 0, 1, …, n - 1, on default_device() unless another is named.
LazyTensor arange(std::int64_t n, DType dtype = DType::i32);
LazyTensor arange(std::int64_t n, DType dtype, Device device);
/// start, start + step, ... as far as they are before stop. Of integers i32, unless a type is named;
/// otherwise f32. ValueError for a step of 0, numbers that are not finite, or integers that the type does not
/// hold; DTypeError for bool.
template <detail::Number Start, detail::Number Stop, detail::Number Step = int>
LazyTensor arange(Start start, Stop stop, Step step = 1, std::optional<DType> dtype = {},
                  std::optional<Device> device = {}) {
  if constexpr (std::integral<Start> && std::integral<Stop> && std::integral<Step>) {
    return detail::arange(static_cast<std::int64_t>(start), static_cast<std::int64_t>(stop),
                          static_cast<std::int64_t>(step), dtype.value_or(DType::i32), device);
  } else {
    return detail::arange(static_cast<double>(start), static_cast<double>(stop), static_cast<double>(step),
                          dtype.value_or(DType::f32), device);
  }
}
/// `num` numbers from start to stop, both exactly as given; without `endpoint` stop would be the next one.
/// `dtype` is floating (DTypeError), start and stop are finite (ValueError).
LazyTensor linspace(double start, double stop, std::int64_t num, DType dtype = DType::f32,
                    bool endpoint = true, std::optional<Device> device = {});
/// Ones on the diagonal k of a matrix of zeros with `rows` rows and `columns` (by default as many) columns.
LazyTensor eye(std::int64_t rows, std::optional<std::int64_t> columns = {}, std::int64_t k = 0,
               DType dtype = DType::f32, std::optional<Device> device = {});

}  // namespace caldera
