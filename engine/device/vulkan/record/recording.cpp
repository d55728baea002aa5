#include "engine/device/vulkan/record/recording.h"

#include <fmt/core.h>

#include <cstring>
#include <limits>

#include "engine/base/error.h"

namespace caldera::vulkan {
namespace {

constexpr std::size_t kBlockAlignment = 64;

}  // namespace

std::uint32_t TableWriter::grow(std::size_t bytes) {
  const std::size_t at = recording_.table.size();
  recording_.table.resize(at + bytes);
  return static_cast<std::uint32_t>(at);
}

std::uint32_t TableWriter::begin() {
  const std::size_t at = (recording_.table.size() + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  recording_.table.resize(at);
  return static_cast<std::uint32_t>(at);
}

void TableWriter::address(const Operand& operand, std::int64_t bias) {
  const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.buffer)];
  AddressPatch patch;
  patch.at = grow(8);
  patch.offset = (operand.offset - bias) * static_cast<std::int64_t>(size_of(buffer.dtype));
  if (buffer.role == BufferRole::arena) {
    if (segments_.empty()) return;  // an arena of nothing: nobody reads through the address
    const std::size_t segment = plan_.arena_segment_at(buffer.arena_offset);
    patch.slot = AddressPatch::arena(segment);
    patch.offset += buffer.arena_offset - segments_[segment].begin;
  } else {
    patch.slot = operand.buffer;  // inputs, then outputs: the order of the slots
  }
  if (operand.position < 0)
    recording_.addresses.push_back(patch);
  else
    recording_.moved.push_back({patch, operand.position, static_cast<std::int64_t>(size_of(buffer.dtype))});
}

void TableWriter::scalar(std::int32_t index) { recording_.scalars.push_back({grow(8), index}); }

void TableWriter::check_fits(std::int64_t value, const Step& step) {
  if (value > std::numeric_limits<std::int32_t>::max() || value < std::numeric_limits<std::int32_t>::min())
    throw ShapeError(fmt::format(
        "{}: an extent, stride or count of {} over {} does not fit the 32-bit addressing of Vulkan kernels",
        step.name(), value, step.dims.to_string()));
}

void TableWriter::integer(std::int64_t value, const Step& step) {
  check_fits(value, step);
  const auto narrow = static_cast<std::int32_t>(value);
  const std::uint32_t at = grow(4);
  std::memcpy(recording_.table.data() + at, &narrow, 4);
}

std::int64_t bias(const Dims& dims, const Dims& strides) {
  std::int64_t least = 0;
  for (int d = 0; d < strides.rank(); ++d) {
    if (strides[d] < 0 && dims[d] > 0) least += (dims[d] - 1) * strides[d];
  }
  return -least;
}

}  // namespace caldera::vulkan
