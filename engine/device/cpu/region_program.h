// A kernel decoded for the CPU: micro-operations over tiles, with tile buffers assigned by liveness.
//
// Values live in numbered locations: first one a kernel input, then one a scalar argument, one an index
// operand, the temporaries, and one an output. At run time each location is a pointer: into the operand
// itself where its elements are contiguous, else to a tile buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/cpu/micro_ops.h"
#include "engine/kernel/kernel.h"

namespace caldera::cpu {

struct MicroInstruction {
  MicroFn fn;
  std::uint16_t out, a, b, c;  // locations
};

struct RegionProgram {
  std::vector<MicroInstruction> code;
  std::vector<DType> inputs;   // of kernel inputs; location i
  std::vector<bool> used;      // inputs that some instruction reads
  std::vector<DType> scalars;  // location inputs.size() + i
  std::vector<DType> indices;  // type of each index operand; location first_index() + i
  int temporaries = 0;
  struct Output {
    DType type;
    /// Whether micro-operations may write straight into the operand: false when an input is read later, since
    /// the planner may have put the output in that input's memory.
    bool direct = false;
  };
  std::vector<Output> outputs;
  std::uint16_t result = 0;  // location of the value to combine; with `reduce` only
  const ReduceOps* reduce = nullptr;
  std::size_t element_bytes = 4;       // widest element of any location
  std::int64_t tile = 1024;            // elements a tile
  double nanoseconds_per_element = 0;  // rough, on one thread

  std::size_t first_scalar() const { return inputs.size(); }
  std::size_t first_index() const { return first_scalar() + scalars.size(); }
  std::size_t first_temporary() const { return first_index() + indices.size(); }
  std::size_t first_output() const { return first_temporary() + static_cast<std::size_t>(temporaries); }
  std::size_t locations() const { return first_output() + outputs.size(); }
};

/// Decodes a kernel. Throws DTypeError naming the kernel and the operation where the CPU has no function.
RegionProgram decode(const Kernel& kernel);

/// The same, remembered by Kernel::hash. `compiled` is raised by one when the kernel was new.
std::shared_ptr<const RegionProgram> decode_cached(const Kernel& kernel, std::uint64_t& compiled);

}  // namespace caldera::cpu
