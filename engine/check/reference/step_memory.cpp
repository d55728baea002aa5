#include "engine/check/reference/step_memory.h"

#include <algorithm>
#include <cstring>

namespace caldera::reference {
namespace {

Point dims_between(const Dims& dims, std::size_t begin, std::size_t end) {
  const auto all = dims.span();
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

Point StepMemory::leading_dims(std::size_t left_out) const {
  return dims_between(step_.dims, 0, static_cast<std::size_t>(step_.dims.rank()) - left_out);
}

Point StepMemory::trailing_dims(std::size_t count) const {
  const auto rank = static_cast<std::size_t>(step_.dims.rank());
  return dims_between(step_.dims, rank - count, rank);
}

std::int64_t StepMemory::element(std::size_t k, const Point& at) const {
  const Operand& operand = step_.operands.at(k);
  std::int64_t element = operand.offset;
  if (operand.position >= 0) {
    for (const Position::Term& term : plan_.positions.at(static_cast<std::size_t>(operand.position)).terms) {
      const auto start = scalar(term.scalar, DType::i64).i;
      element += std::max<std::int64_t>(0, std::min(start, term.limit)) * term.stride;
    }
  }
  for (std::size_t d = 0; d < at.size(); ++d) element += at[d] * operand.strides[static_cast<int>(d)];
  return element;
}

Number StepMemory::read(std::size_t k, DType type, const Point& at) const {
  return read_number(bytes(k), type, element(k, at));
}

void StepMemory::write(std::size_t k, DType type, const Point& at, Number value) const {
  write_number(bytes(k), type, element(k, at), rounded(type, value));
}

Number StepMemory::scalar(std::int32_t slot, DType type) const {
  // Bound scalars first, then the plan's constants.
  const auto number = static_cast<std::size_t>(slot);
  const std::size_t bound = memory_.scalars.size();
  const std::uint64_t bits = number < bound ? memory_.scalars[number] : plan_.constants.at(number - bound);
  std::vector<std::byte> raw(8);
  std::memcpy(raw.data(), &bits, 8);
  return read_number(raw, type, 0);
}

std::vector<std::byte>& StepMemory::bytes(std::size_t k) const {
  return memory_.buffers.at(static_cast<std::size_t>(step_.operands.at(k).buffer));
}

DType StepMemory::type(std::size_t k) const {
  return plan_.buffers.at(static_cast<std::size_t>(step_.operands.at(k).buffer)).dtype;
}

}  // namespace caldera::reference
