// Running an element-wise kernel, by machine code, whose operands all run through memory across its results:
// it goes through blocks of the operands where they are, and what comes out is turned on its way to memory.
#include <hwy/cache_control.h>

#include <algorithm>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/regions/region_space.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/tiles/turned_copy.h"

namespace caldera::cpu {
namespace {

constexpr std::int64_t kLineOfCache = 64;  // bytes

/// Bytes of an output above which its blocks go past the caches: no part of it would be in them later.
constexpr std::int64_t kLargeOutput = std::int64_t{8} << 20;

Scratch& block_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

/// An element-wise kernel, of which some operand may run across the innermost dim. `points`: those of the
/// whole step.
void PreparedRegion::prepare_across(Space space, std::int64_t points) {
  const auto across = turned_ ? std::nullopt : space.across();
  if (across) {
    const std::int64_t block = space.dims.back() >= kColumnsTogether ? kColumnsTogether : kFewestColumns;
    std::int64_t run = 0;
    const auto may_be_compiled = [](const BoundOperand& o) { return o.size == 2 || o.size == 4; };
    if (layout_.indices.empty() && std::ranges::all_of(layout_.inputs, may_be_compiled) &&
        std::ranges::all_of(layout_.outputs, may_be_compiled) &&
        space.only_inputs_across(*across, layout_.inputs.size())) {
      const std::int64_t line = kLineOfCache / static_cast<std::int64_t>(layout_.inputs.front().size);
      run = space.dims[*across] >= line ? std::max(line, kFewestColumns) : kFewestColumns;
    }
    const auto leave = [&](std::optional<Space> rest) {
      if (!rest) return;
      auto region = std::make_shared<PreparedRegion>(*this);
      region->total_ = points_of(rest->dims);
      region->nanoseconds_ *= static_cast<double>(region->total_) / static_cast<double>(total_);
      nanoseconds_ -= region->nanoseconds_;
      total_ -= region->total_;
      region->rests_.clear();
      region->prepare_across(*std::move(rest), points);
      rests_.push_back(std::move(region));
    };
    leave(space.take_rest(space.dims.size() - 1, block));
    if (run > 0) leave(space.take_rest(*across, run));
    space.split(*across, block, run);
    turns_ = run > 0;
  }
  prepare_elementwise(space);
  if (turns_) find_turned_blocks(space);
  for (BoundOperand& output : layout_.outputs)
    output.access.past_caches = across && points * static_cast<std::int64_t>(output.size) >= kLargeOutput;
}

/// Blocks of which results are turned.
void PreparedRegion::find_turned_blocks(const Space& space) {
  const std::size_t rank = space.dims.size();
  const std::size_t inputs = layout_.inputs.size();
  direct_operands_.clear();  // of rows, maybe some of them alone
  is_direct_ = false;
  for (std::size_t o = 0; o < space.strides.size(); ++o) {
    const BoundOperand& bound = o < inputs ? layout_.inputs[o] : layout_.outputs[o - inputs];
    const std::size_t location = o < inputs ? o : layout_.program->first_output() + o - inputs;
    const auto& strides = space.strides[o];
    direct_operands_.push_back({static_cast<std::uint16_t>(location),
                                false,
                                bound.buffer,
                                static_cast<std::int64_t>(bound.size),
                                space.offsets[o],
                                strides[o < inputs ? rank - 2 : rank - 1],
                                {strides.begin(), strides.end() - 2}});
  }
  run_ = space.dims.back();
  block_rows_ = space.dims[rank - 2];
  block_dims_.assign(space.dims.begin(), space.dims.end() - 2);
}

/// Whether it ran.
bool PreparedRegion::run_turned(const RunContext& context) const {
  if (!turns_) return false;
  const RowFunction function = machine_code();
  if (function == nullptr) return false;
  const std::int64_t blocks = total_ / (block_rows_ * run_);
  parallel_ranges(blocks, threads_for(nanoseconds_, blocks), [&](std::int64_t begin, std::int64_t end) {
    if (begin < end) run_turned_blocks(function, context, begin, end);
  });
  return true;
}

void PreparedRegion::run_turned_blocks(RowFunction function, const RunContext& context, std::int64_t begin,
                                       std::int64_t end) const {
  const TileProgram& program = *layout_.program;
  const std::size_t locations = program.locations();
  const std::size_t first_output = program.first_output();
  const std::size_t outputs = locations - first_output;
  const bool past_caches = layout_.outputs.front().access.past_caches;
  const std::size_t table_bytes = ((2 * locations + outputs) * sizeof(std::byte*) + 63) / 64 * 64;
  const auto block_bytes = static_cast<std::size_t>(block_rows_ * run_) * program.element_bytes;
  std::byte* memory = block_scratch().get(table_bytes + outputs * block_bytes);
  auto** at = reinterpret_cast<std::byte**>(memory);
  std::byte** results = at + locations;
  auto* steps = reinterpret_cast<std::int64_t*>(results + outputs);
  memory += table_bytes;
  std::fill_n(steps, locations, 0);
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    const std::uint64_t& bits = context.scalars[static_cast<std::size_t>(layout_.scalars[i])];
    at[program.first_scalar() + i] =
        const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&bits));  // is read alone
  }
  for (const DirectOperand& o : direct_operands_) {
    const bool is_result = o.location >= first_output;
    steps[o.location] = (is_result ? run_ : o.step) * o.size;
    if (!is_result) continue;
    at[o.location] = memory;
    memory += block_bytes;
  }
  const std::int64_t line = block_dims_.back();  // of blocks, at equal distances
  while (begin < end) {
    for (const DirectOperand& o : direct_operands_) {
      std::int64_t element = o.offset;
      std::int64_t place = begin;
      for (std::size_t d = block_dims_.size(); d-- > 0; place /= block_dims_[d])
        element += place % block_dims_[d] * o.outer[d];
      std::byte* address = context.buffers[static_cast<std::size_t>(o.buffer)] + element * o.size;
      (o.location < first_output ? at[o.location] : results[o.location - first_output]) = address;
    }
    const std::int64_t last = std::min(end, begin + line - begin % line);
    for (; begin < last; ++begin) {
      function(at, steps, block_rows_, run_);
      for (const DirectOperand& o : direct_operands_) {
        if (o.location < first_output) {
          // The next block, of which memory is to send lines while results are stored.
          const std::byte* next = at[o.location] += o.outer.back() * o.size;
          for (std::int64_t row = 0; row < block_rows_; ++row, next += steps[o.location])
            __builtin_prefetch(next, 0, 2);
          continue;
        }
        std::byte*& result = results[o.location - first_output];
        turn_block(at[o.location], run_, result, o.step, run_, block_rows_, static_cast<std::size_t>(o.size),
                   past_caches);
        result += o.outer.back() * o.size;
      }
    }
  }
  if (past_caches) hwy::FlushStream();
}

}  // namespace caldera::cpu
