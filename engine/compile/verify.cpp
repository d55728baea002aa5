// The plan verifier. It shares no code with the passes that it checks: it replays the plan over a model of
// memory in which every byte knows which buffer wrote it last and when it was last touched.
#include <fmt/core.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>

#include "engine/compile/compile.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

/// What is known of a run of bytes. Epochs count barriers; 0 means never.
struct Bytes {
  std::int64_t end = 0;
  std::int32_t owner = -1;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::size_t reader = 0;  // the step that read last, or kSeveral
};

constexpr std::size_t kSeveral = ~std::size_t{0};

/// One address space as runs of equal state.
class Memory {
 public:
  explicit Memory(std::int64_t size) : size_(size) {
    if (size > 0) runs_.emplace(0, Bytes{.end = size});
  }
  std::int64_t size() const { return size_; }

  /// Calls visit on every run within [begin, end), split so that none reaches beyond.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, Visit visit) {
    split(begin);
    split(end);
    for (auto run = runs_.lower_bound(begin); run != runs_.end() && run->first < end; ++run)
      visit(run->second);
  }
  /// One state for all of [begin, end): keeps the number of runs small.
  void assign(std::int64_t begin, std::int64_t end, Bytes state) {
    split(begin);
    split(end);
    runs_.erase(runs_.lower_bound(begin), runs_.lower_bound(end));
    state.end = end;
    runs_.emplace(begin, state);
  }

 private:
  void split(std::int64_t at) {
    auto run = runs_.upper_bound(at);
    if (run == runs_.begin()) return;
    --run;
    if (run->first == at || run->second.end <= at) return;
    Bytes right = run->second;
    run->second.end = at;
    runs_.emplace(at, right);
  }

  std::int64_t size_;
  std::map<std::int64_t, Bytes> runs_;
};

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), arena_(plan.arena_bytes) {}

  void run() {
    check_buffers();
    for (; step_ < plan_.steps.size(); ++step_) check_step(plan_.steps[step_]);
    check_outputs();
  }

 private:
  [[noreturn]] void reject(const std::string& why) const {
    std::string where = "the end";
    if (step_ < plan_.steps.size()) {
      const Step& step = plan_.steps[step_];
      const bool named = step.kind != StepKind::region || step.kernel;
      where = fmt::format("step {} ({})", step_, named ? step.name() : "region");
    }
    throw PlanError(fmt::format("plan rejected at {}: {}", where, why));
  }

  void check_buffers() {
    const auto inputs = static_cast<std::size_t>(plan_.input_count);
    const auto outputs = static_cast<std::size_t>(plan_.output_count);
    if (plan_.input_count < 0 || plan_.output_count < 0 || inputs + outputs > plan_.buffers.size()) {
      reject("there are fewer buffers than inputs and outputs");
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      const BufferRole wanted = b < inputs             ? BufferRole::input
                                : b < inputs + outputs ? BufferRole::output
                                                       : BufferRole::arena;
      if (buffer.role != wanted) reject(fmt::format("buffer {} has the wrong role", b));
      if (buffer.bytes < 0) reject(fmt::format("buffer {} has a negative size", b));
      if (buffer.role == BufferRole::output) {
        outputs_.emplace_back(buffer.bytes);
        written_bytes_.push_back(0);
      }
      if (buffer.role != BufferRole::arena) continue;
      if (buffer.arena_offset % kArenaAlignment != 0) reject(fmt::format("buffer {} is not aligned", b));
      if (buffer.arena_offset < 0 || buffer.arena_offset + buffer.bytes > plan_.arena_bytes) {
        reject(fmt::format("buffer {} leaves the arena", b));
      }
    }
  }

  void check_step(const Step& step) {
    check_form(step);
    if (step.barrier_before) ++epoch_;
    const std::size_t first_output = step.operands.size() - static_cast<std::size_t>(step.output_count());
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (k < first_output || step.kind == StepKind::scatter_add) access(step, k, k >= first_output, false);
    }
    for (std::size_t k = first_output; k < step.operands.size(); ++k) {
      access(step, k, true, true);
      count_written(step, step.operands[k]);
    }
  }

  /// Adds up the elements that steps store in each output. Ranges of bytes cannot see holes between strides;
  /// a count that falls short does. An accumulation adds to what is there.
  void count_written(const Step& step, const Operand& operand) {
    const std::int32_t output = operand.buffer - plan_.input_count;
    if (output < 0 || output >= plan_.output_count || step.kind == StepKind::scatter_add) return;
    const int combined = step.kind == StepKind::contract ? 1 : step.reduce_rank;
    std::int64_t points = 1;
    for (int d = 0; d < step.dims.rank() - combined; ++d) points *= step.dims[d];
    const DType type = plan_.buffers[static_cast<std::size_t>(operand.buffer)].dtype;
    written_bytes_[static_cast<std::size_t>(output)] += points * static_cast<std::int64_t>(size_of(type));
  }

  void check_form(const Step& step) const {
    std::size_t wanted = 3;
    if (step.kind == StepKind::region) {
      if (!step.kernel) reject("a region without a kernel");
      const Kernel& kernel = *step.kernel;
      wanted = kernel.inputs.size() + static_cast<std::size_t>(kernel.index_count) + kernel.outputs.size();
      if (step.scalars.size() != kernel.scalars.size()) reject("the wrong number of scalar arguments");
      for (std::size_t i = 0; i < step.scalars.size(); ++i) {
        const auto slot = static_cast<std::size_t>(step.scalars[i]);
        if (step.scalars[i] < 0 || slot >= plan_.scalars.size())
          reject("a scalar argument that does not exist");
        if (plan_.scalars[slot] != kernel.scalars[i]) reject("a scalar argument of the wrong type");
      }
      if (kernel.reduce.has_value() ? kernel.outputs.size() != 1 : step.reduce_rank != 0) {
        reject("reduced dimensions do not fit the kernel");
      }
      check_code(kernel);
    } else {
      if (step.dims.rank() < 3) reject("too few dimensions");
    }
    if (step.reduce_rank < 0 || step.reduce_rank > step.dims.rank())
      reject("more reduced dimensions than there are");
    if (step.operands.size() != wanted) reject("the wrong number of operands");
    for (std::int64_t extent : step.dims) {
      if (extent < 0) reject("a negative extent");
    }
    for (std::size_t k = 0; k < step.operands.size(); ++k) check_operand(step, k);
  }

  void check_code(const Kernel& kernel) const {
    for (std::size_t v = 0; v < kernel.code.size(); ++v) {
      const Instruction& i = kernel.code[v];
      const std::uint16_t used[] = {i.a, i.b, i.c};
      for (int a = 0; a < info(i.op).arity; ++a) {
        if (used[a] >= v) reject("an instruction uses a value before it is computed");
      }
      if ((i.op == ScalarOp::load && i.a >= kernel.inputs.size()) ||
          (i.op == ScalarOp::scalar && i.a >= kernel.scalars.size()) ||
          (i.op == ScalarOp::index && i.a >= kernel.index_count)) {
        reject("an instruction reads an operand that does not exist");
      }
    }
    for (const Kernel::Output& output : kernel.outputs) {
      if (output.value >= kernel.code.size()) reject("an output that is not computed");
    }
  }

  void check_operand(const Step& step, std::size_t k) const {
    const Operand& operand = step.operands[k];
    if (operand.strides.rank() != step.dims.rank()) reject(fmt::format("operand {} has the wrong rank", k));
    bool is_index = false;
    DType wanted = step.dtype;
    if (step.kind == StepKind::region) {
      const Kernel& kernel = *step.kernel;
      const std::size_t loads = kernel.inputs.size();
      const std::size_t indices = static_cast<std::size_t>(kernel.index_count);
      is_index = k >= loads && k < loads + indices;
      if (k < loads) wanted = kernel.inputs[k];
      if (k >= loads + indices) wanted = kernel.outputs[k - loads - indices].type;
      if (k >= loads + indices) {
        for (int d = step.dims.rank() - step.reduce_rank; d < step.dims.rank(); ++d) {
          if (operand.strides[d] != 0) reject("the result of a reduction varies along a reduced dimension");
        }
      }
    } else if (k == 1 && step.kind != StepKind::contract) {
      wanted = DType::i32;
    }
    if (is_index) {
      if (operand.buffer != -1) reject(fmt::format("index operand {} names a buffer", k));
      return;
    }
    if (operand.buffer < 0 || static_cast<std::size_t>(operand.buffer) >= plan_.buffers.size()) {
      reject(fmt::format("operand {} names a buffer that does not exist", k));
    }
    if (plan_.buffers[static_cast<std::size_t>(operand.buffer)].dtype != wanted) {
      reject(fmt::format("operand {} has the wrong type", k));
    }
  }

  /// Lowest and highest element that operand k of the step can touch; false if none.
  static bool reach(const Step& step, std::size_t k, std::int64_t& low, std::int64_t& high) {
    const Operand& operand = step.operands[k];
    low = high = operand.offset;
    for (int d = 0; d < step.dims.rank(); ++d) {
      if (step.dims[d] == 0) {
        const bool reduced_output = k + 1 == step.operands.size() && operand.strides[d] == 0;
        if (!reduced_output) return false;
        continue;
      }
      const std::int64_t far = operand.strides[d] * (step.dims[d] - 1);
      if (far < 0)
        low += far;
      else
        high += far;
    }
    const bool through_axis =
        (step.kind == StepKind::gather && k == 0) || (step.kind == StepKind::scatter_add && k == 2);
    if (through_axis) {
      if (step.axis_extent <= 0) return false;
      const std::int64_t far = step.axis_stride * (step.axis_extent - 1);
      if (far < 0)
        low += far;
      else
        high += far;
    }
    return true;
  }

  /// Where operand k lies in its address space: the arena (-1) or an output.
  std::int32_t space_of(const Operand& operand) const {
    const bool in_arena = plan_.buffers[static_cast<std::size_t>(operand.buffer)].role == BufferRole::arena;
    return in_arena ? -1 : operand.buffer;
  }
  std::int64_t address_of(const Operand& operand) const {
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.buffer)];
    return buffer.arena_offset + operand.offset * static_cast<std::int64_t>(size_of(buffer.dtype));
  }

  /// The points of a step run in any order, so writing over an operand is right only where each point reads
  /// the very element that it writes. An accumulation does by nature.
  bool may_overwrite_own_reads(const Step& step, std::size_t written) const {
    const Operand& to = step.operands[written];
    const DType type = plan_.buffers[static_cast<std::size_t>(to.buffer)].dtype;
    for (std::size_t k = 0; k < step.operands.size() - static_cast<std::size_t>(step.output_count()); ++k) {
      const Operand& from = step.operands[k];
      std::int64_t low = 0, high = 0, to_low = 0, to_high = 0;
      if (from.buffer < 0 || space_of(from) != space_of(to) || !reach(step, k, low, high) ||
          !reach(step, written, to_low, to_high)) {
        continue;
      }
      const DType read = plan_.buffers[static_cast<std::size_t>(from.buffer)].dtype;
      const std::int64_t shift = address_of(from) - address_of(to);
      const auto bytes = [](std::int64_t elements, DType t) {
        return elements * static_cast<std::int64_t>(size_of(t));
      };
      const bool apart = shift + bytes(high + 1 - from.offset, read) <= bytes(to_low - to.offset, type) ||
                         bytes(to_high + 1 - to.offset, type) <= shift + bytes(low - from.offset, read);
      const bool same_elements = step.kind == StepKind::region && step.reduce_rank == 0 && shift == 0 &&
                                 size_of(read) == size_of(type) && from.strides == to.strides;
      if (!apart && !same_elements) return false;
    }
    return true;
  }

  void access(const Step& step, std::size_t k, bool is_output, bool write) {
    const Operand& operand = step.operands[k];
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (operand.buffer < 0 || !reach(step, k, low, high)) return;
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.buffer)];
    const auto size = static_cast<std::int64_t>(size_of(buffer.dtype));
    if (low < 0 || (high + 1) * size > buffer.bytes) {
      reject(fmt::format("operand {} touches bytes {} to {} of a buffer of {}", k, low * size,
                         (high + 1) * size, buffer.bytes));
    }
    if (buffer.role == BufferRole::input) {
      if (is_output) reject("an input of the plan is written");
      return;
    }
    const bool in_arena = buffer.role == BufferRole::arena;
    Memory& memory =
        in_arena ? arena_ : outputs_[static_cast<std::size_t>(operand.buffer - plan_.input_count)];
    const std::int64_t base = in_arena ? buffer.arena_offset : 0;
    const std::int64_t begin = base + low * size;
    const std::int64_t end = base + (high + 1) * size;
    const std::int32_t self = operand.buffer;
    memory.visit(begin, end, [&](Bytes& bytes) {
      if (write) {
        if (bytes.written == epoch_) {
          reject(fmt::format("operand {} overwrites what no barrier separates from its writer", k));
        }
        if (bytes.read != epoch_) return;
        if (bytes.reader != step_) {
          reject(fmt::format("operand {} overwrites what no barrier separates from its reader", k));
        }
        if (!may_overwrite_own_reads(step, k)) {
          reject(fmt::format("operand {} overwrites what the step itself reads", k));
        }
        return;
      }
      if (bytes.owner != self)
        reject(fmt::format("operand {} reads bytes that it never got, or lost to another buffer", k));
      if (bytes.written == epoch_)
        reject(fmt::format("operand {} reads what no barrier separates from its writer", k));
      // Of two readers since the last barrier the later would hide the earlier: then no single one is to
      // blame.
      bytes.reader = bytes.read == epoch_ && bytes.reader != step_ ? kSeveral : step_;
      bytes.read = epoch_;
    });
    if (write) memory.assign(begin, end, {.owner = self, .written = epoch_});
  }

  void check_outputs() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      outputs_[k].visit(0, outputs_[k].size(), [&](Bytes& bytes) {
        if (bytes.owner < 0) reject(fmt::format("output {} is not written in full", k));
      });
      if (written_bytes_[k] < outputs_[k].size()) reject(fmt::format("output {} is written with holes", k));
    }
  }

  const Plan& plan_;
  Memory arena_;
  std::vector<Memory> outputs_;
  std::vector<std::int64_t> written_bytes_;  // of each output
  std::size_t step_ = 0;
  std::uint64_t epoch_ = 1;
};

}  // namespace

void verify_plan(const Plan& plan) { Verifier(plan).run(); }

}  // namespace caldera
