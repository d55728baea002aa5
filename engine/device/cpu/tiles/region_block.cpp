#include "engine/device/cpu/tiles/region_block.h"

#include <algorithm>

namespace caldera::cpu {

RegionBlock::RegionBlock(std::shared_ptr<const RegionProgram> program, const Shape& space,
                         std::span<const Operand> operands, std::span<const std::int32_t> scalars,
                         Given given)
    : step_(std::move(program), space, operands, scalars, given.inputs, given.outputs) {}

void BlockRunner::run(std::int64_t position, std::int64_t n, std::span<const void* const> inputs,
                      std::span<void* const> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) tiles_.give_input(i, inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) tiles_.give_output(i, outputs[i]);
  tiles_.seek(position);
  std::int64_t row = position / layout_.row;
  std::int64_t left = (row + 1) * layout_.row - position;  // of the row
  tiles_.seek_rows(row);
  tiles_.start_rows(1);
  while (n > 0) {
    const std::int64_t count = std::min({n, left, layout_.tile});
    tiles_.run(count);
    n -= count;
    left -= count;
    if (left > 0 || n == 0) continue;
    tiles_.start_rows(1);
    left = layout_.row;
  }
}

}  // namespace caldera::cpu
