// Values read back from devices.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/graph/data_leaf.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/memory_pressure.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/dispatch.h"

namespace caldera {

void LazyTensor::copy_to_host(void* out) const {
  eval();
  if (bytes_of(node()) == 0) return;
  fetch_value(node(), out);
}

template <class E>
std::vector<E> LazyTensor::to_vector() const {
  if (dtype() != dtype_of<E>()) {
    throw DTypeError(fmt::format("to_vector: the tensor is {}, not {}; convert with astype()", name(dtype()),
                                 name(dtype_of<E>())));
  }
  std::vector<E> out(static_cast<std::size_t>(numel()));
  if constexpr (std::is_same_v<E, bool>) {  // std::vector<bool> has no contiguous elements
    std::vector<std::uint8_t> bytes(out.size());
    copy_to_host(bytes.data());
    std::copy(bytes.begin(), bytes.end(), out.begin());
  } else {
    copy_to_host(out.data());
  }
  return out;
}

template std::vector<bool> LazyTensor::to_vector<bool>() const;
template std::vector<std::uint8_t> LazyTensor::to_vector<std::uint8_t>() const;
template std::vector<std::uint32_t> LazyTensor::to_vector<std::uint32_t>() const;
template std::vector<std::int8_t> LazyTensor::to_vector<std::int8_t>() const;
template std::vector<std::int16_t> LazyTensor::to_vector<std::int16_t>() const;
template std::vector<std::int32_t> LazyTensor::to_vector<std::int32_t>() const;
template std::vector<std::int64_t> LazyTensor::to_vector<std::int64_t>() const;
template std::vector<Half> LazyTensor::to_vector<Half>() const;
template std::vector<BFloat16> LazyTensor::to_vector<BFloat16>() const;
template std::vector<float> LazyTensor::to_vector<float>() const;
template std::vector<double> LazyTensor::to_vector<double>() const;

template <class N>
N LazyTensor::item() const {
  if (numel() != 1)
    throw ShapeError(fmt::format("item: shape {} has {} elements", shape().to_string(), numel()));
  std::array<std::byte, 8> raw{};
  copy_to_host(raw.data());
  return dispatch(dtype(), [&]<class E>() {
    Stored<E> element{};
    std::memcpy(&element, raw.data(), sizeof(element));
    return static_cast<N>(to_number(element));
  });
}

template float LazyTensor::item<float>() const;
template double LazyTensor::item<double>() const;
template std::uint8_t LazyTensor::item<std::uint8_t>() const;
template std::uint32_t LazyTensor::item<std::uint32_t>() const;
template std::int8_t LazyTensor::item<std::int8_t>() const;
template std::int16_t LazyTensor::item<std::int16_t>() const;
template std::int32_t LazyTensor::item<std::int32_t>() const;
template std::int64_t LazyTensor::item<std::int64_t>() const;
template bool LazyTensor::item<bool>() const;

}  // namespace caldera
