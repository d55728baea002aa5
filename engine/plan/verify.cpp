// The verifier shares no code with the passes that it checks: it derives from the contracts which elements
// every step touches (steps/step_form.h) and replays the plan over a model of memory in which every byte
// knows which buffer wrote it last and when it was last touched (verify_memory.h).
#include "engine/plan/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/plan/inner_plan.h"
#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"
#include "engine/plan/verify_arena.h"
#include "engine/plan/verify_donation.h"
#include "engine/plan/verify_memory.h"

namespace caldera {
namespace {

using verify::Bytes;
using verify::Fault;
using verify::kSeveral;
using verify::Memory;
using verify::OperandForm;
using verify::OperandRole;
using verify::Run;
using verify::Walk;

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan), arena_(plan.arena_bytes < 0 ? 0 : plan.arena_bytes) {}

  void run() {
    try {
      check_buffers();
      donations_.emplace(plan_);
      for (; step_ < plan_.steps.size(); ++step_) check_step(plan_.steps[step_]);
      check_outputs();
    } catch (const Fault& fault) {
      throw PlanError(fmt::format("plan rejected at {}: {}", where(), fault.why));
    }
  }

 private:
  /// An operand of the current step: what it is, and the bytes that it touches.
  struct Access {
    OperandForm form;
    std::optional<Walk> walk;  // in bytes of its address space; none when nothing is touched
  };

  std::string where() const {
    if (step_ >= plan_.steps.size()) return "the end";
    return fmt::format("step {} ({})", step_, plan_.steps[step_].name());
  }

  void check_buffers() {
    const auto inputs = static_cast<std::size_t>(plan_.input_count);
    const auto outputs = static_cast<std::size_t>(plan_.output_count);
    if (plan_.input_count < 0 || plan_.output_count < 0 || inputs + outputs > plan_.buffers.size())
      throw Fault{"there are fewer buffers than inputs and outputs"};
    if (plan_.constants.size() > plan_.scalars.size()) throw Fault{"more constants than scalar arguments"};
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      const BufferRole wanted = b < inputs             ? BufferRole::input
                                : b < inputs + outputs ? BufferRole::output
                                                       : BufferRole::arena;
      if (buffer.role != wanted) throw Fault{fmt::format("buffer {} has the wrong role", b)};
      if (buffer.bytes < 0) throw Fault{fmt::format("buffer {} has a negative size", b)};
      if (buffer.role == BufferRole::output) outputs_.emplace_back(buffer.bytes);
    }
    verify::check_arena(plan_);
  }

  /// Everything about a step but its accesses to memory: the fields of its kind, the kernels, scalar
  /// arguments, and that its operands are of the right number, type and rank and stand still where they must.
  std::vector<OperandForm> forms_of(const Step& step) const {
    for (std::int64_t extent : step.dims) {
      if (extent < 0) throw Fault{"a negative extent"};
    }
    verify::StepForm form(step, plan_.buffers, plan_.scalars);
    step.visit([&](const auto& kind) { kind.check(form); });
    std::vector<OperandForm> forms = form.finish();
    step.check_values();
    if (const auto* control = step.if_a<ControlStep>()) check_parts(*control);
    return forms;
  }

  /// The plans that a step runs: what it knows of each is true, and each is right by itself.
  static void check_parts(const ControlStep& control) {
    const auto same = [](const std::vector<ControlValue>& a, const std::vector<ControlValue>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const ControlValue& x, const ControlValue& y) {
                          return x.dtype == y.dtype && x.elements == y.elements;
                        });
    };
    for (std::size_t p = 0; p < control.parts.size(); ++p) {
      const ControlPlan& part = control.parts[p];
      const ControlPlan is = inner_plan(part.plan, part.parameters, part.numbers);
      if (!same(part.inputs, is.inputs) || !same(part.results, is.results) || part.scalars != is.scalars ||
          part.arena_bytes != is.arena_bytes)
        throw Fault{fmt::format("part {} has another plan than the step says", p)};
      try {
        verify_plan(*part.plan);
      } catch (const PlanError& error) {
        throw Fault{fmt::format("part {}: {}", p, error.what())};
      }
    }
  }

  void check_step(const Step& step) {
    accesses_.clear();
    const std::vector<OperandForm> forms = forms_of(step);
    for (const OperandForm& form : forms) accesses_.push_back({form, {}});
    check_joined(step);
    if (step.finishes) check_finishing(step);
    if (step.barrier_before) ++epoch_;
    donations_->step(step, forms, epoch_);
    for (std::size_t k = 0; k < accesses_.size(); ++k) find_bytes(step, k);
    for (std::size_t k = 0; k < accesses_.size(); ++k) {
      const OperandForm& form = accesses_[k].form;
      // What is written at a place that numbers choose leaves the rest as it was: all must have been written.
      const bool goes_on = form.accumulated || step.operands[k].position >= 0;
      if (form.role == OperandRole::read || goes_on) note_read(step, k);
    }
    for (std::size_t k = 0; k < accesses_.size(); ++k) {
      if (accesses_[k].form.role == OperandRole::written) note_write(step, k);
    }
  }

  /// Joined steps have no barrier among them, so that a hazard between two of them is found like any other.
  void check_joined(const Step& step) const {
    if (step.follows && !step.joined) throw Fault{"follows a step that it is not joined to"};
    if (!step.joined) return;
    if (step_ == 0) throw Fault{"joined to a step before the first"};
    const Step& before = plan_.steps[step_ - 1];
    if (step.follows) {
      if (before.joined || !step.is<ContractStep>()) throw Fault{"follows what is no product by itself"};
    } else if (before.follows) {
      throw Fault{"joined to a step that follows another"};
    }
    if (step.is<RegionStep>() && before.is<RegionStep>()) {
      if (step.as<RegionStep>().kernel->hash != before.as<RegionStep>().kernel->hash)
        throw Fault{"joined to a step with another kernel"};
    } else if (step.is<ContractStep>() && before.is<ContractStep>()) {
      check_products_joined(step, before);
    } else {
      throw Fault{"joined steps that are not both regions, nor both contractions"};
    }
    if (step.barrier_before) throw Fault{"a barrier within a dispatch"};
  }

  /// Steps are proved to be right as a dispatch of their own. At the end of the one before they are as well,
  /// if that is all that the barrier between the two waits for, and what comes next waits for both.
  void check_finishing(const Step& step) const {
    if (!step.is<RegionStep>() || step.joined)
      throw Fault{"finishes a dispatch, and is no region of its own"};
    if (step_ == 0 || !step.barrier_before) throw Fault{"finishes what it does not wait for"};
    std::size_t before = step_ - 1;
    while (before > 0 && plan_.steps[before].joined) --before;
    const Step& first = plan_.steps[before];
    if (!first.is<ContractStep>()) throw Fault{"finishes what is no product"};
    if (before > 0 && !first.barrier_before)
      throw Fault{"finishes one of several dispatches that it waits for"};
    std::size_t next = step_ + 1;
    while (next < plan_.steps.size() && plan_.steps[next].joined) ++next;
    if (next < plan_.steps.size() && !plan_.steps[next].barrier_before)
      throw Fault{"finishes a dispatch that the next one does not wait for"};
  }

  /// One text of a kernel serves all products of a dispatch.
  void check_products_joined(const Step& step, const Step& before) const {
    const auto& a = before.as<ContractStep>();
    const auto& b = step.as<ContractStep>();
    if ((a.epilogue != nullptr) != (b.epilogue != nullptr) ||
        (a.epilogue && !step.follows && a.epilogue->hash != b.epilogue->hash))
      throw Fault{"joined to a product with another epilogue"};
    if (step.follows && !a.epilogue) throw Fault{"follows a product without an epilogue"};
    if (step.dtype != before.dtype || (step.follows && step.dims.rank() != before.dims.rank()) ||
        a.segments.size() != b.segments.size())
      throw Fault{"joined to a product of another form"};
    for (int d = 0; step.follows && d + 1 < step.dims.rank(); ++d) {
      if (step.dims[d] != before.dims[d]) throw Fault{"follows a product over another space"};
    }
    for (std::size_t s = 0; s < a.segments.size(); ++s) {
      if (scale_type(a.segments[s]) != scale_type(b.segments[s]))
        throw Fault{"joined to a product with other factors"};
      for (const std::size_t k : {2 * s, 2 * s + 1}) {
        if (buffer_of(step.operands[k]).dtype != buffer_of(before.operands[k]).dtype)
          throw Fault{"joined to a product of other types"};
      }
    }
  }
  std::optional<DType> scale_type(const Segment& segment) const {
    if (segment.scale < 0) return {};
    return plan_.scalars[static_cast<std::size_t>(segment.scale)];
  }

  Memory* memory_of(const PlanBuffer& buffer, std::int32_t number) {
    if (buffer.role == BufferRole::input) return nullptr;
    if (buffer.role == BufferRole::arena) return &arena_;
    return &outputs_[static_cast<std::size_t>(number - plan_.input_count)];
  }
  /// Address spaces: the arena, and every other buffer by itself.
  static bool same_space(const PlanBuffer& a, const PlanBuffer& b) {
    return &a == &b || (a.role == BufferRole::arena && b.role == BufferRole::arena);
  }
  const PlanBuffer& buffer_of(const Operand& operand) const {
    return plan_.buffers[static_cast<std::size_t>(operand.buffer)];
  }

  /// Which bytes operand k touches, all of them within its buffer.
  void find_bytes(const Step& step, std::size_t k) {
    const OperandForm& form = accesses_[k].form;
    const Operand& operand = step.operands[k];
    if (form.role == OperandRole::index) return;
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides;
    for (int d = 0; d < form.extents.rank(); ++d) {
      if ((form.needed >> d & 1U) != 0 && form.extents[d] == 0) return;
      if ((form.walked >> d & 1U) == 0) continue;
      extents.push_back(form.extents[d]);
      strides.push_back(operand.strides[d]);
    }
    // Any element of the indexed axis may be touched. The elements of an accumulation meet there in order.
    if (form.indexed) {
      if (form.indexed->extent == 0) return;
      extents.push_back(form.indexed->extent);
      strides.push_back(form.indexed->stride);
    }
    std::optional<Walk> walk = verify::walk_of(operand.offset, extents, strides);
    if (walk && operand.position >= 0) {
      const bool once = walk->once;
      add_places(operand, k, extents, strides);
      walk = verify::walk_of(operand.offset, extents, strides);
      if (walk) walk->once = once;
    }
    if (!walk) throw Fault{fmt::format("operand {} touches elements beyond 64 bits", k)};
    const PlanBuffer& buffer = buffer_of(operand);
    const auto size = static_cast<std::int64_t>(size_of(buffer.dtype));
    if (walk->hull.begin < 0 || walk->hull.end > buffer.bytes / size) {
      throw Fault{fmt::format("operand {} touches bytes {} to {} of a buffer of {}", k,
                              walk->hull.begin * size, walk->hull.end * size, buffer.bytes)};
    }
    if (form.role == OperandRole::written && !walk->once)
      throw Fault{fmt::format("operand {} has elements that several points write", k)};
    const std::int64_t base = buffer.role == BufferRole::arena ? buffer.arena_offset : 0;
    for (Run& run : walk->runs) run = {base + run.begin * size, base + run.end * size};
    accesses_[k].walk = std::move(walk);
  }

  /// Wherever its position may move an operand, as further axes.
  void add_places(const Operand& operand, std::size_t k, std::vector<std::int64_t>& extents,
                  std::vector<std::int64_t>& strides) const {
    if (static_cast<std::size_t>(operand.position) >= plan_.positions.size())
      throw Fault{fmt::format("operand {} names a position that does not exist", k)};
    for (const Position::Term& term : plan_.positions[static_cast<std::size_t>(operand.position)].terms) {
      const auto scalar = static_cast<std::size_t>(term.scalar);
      if (term.scalar < 0 || scalar >= plan_.scalars.size() || plan_.scalars[scalar] != DType::i64)
        throw Fault{fmt::format("operand {} is moved by a scalar argument that is no int64", k)};
      if (term.limit < 0 || term.limit == std::numeric_limits<std::int64_t>::max())
        throw Fault{fmt::format("operand {} is moved without bounds", k)};
      extents.push_back(term.limit + 1);
      strides.push_back(term.stride);
    }
  }

  void note_read(const Step& step, std::size_t k) {
    const Operand& operand = step.operands[k];
    if (!accesses_[k].walk) return;
    Memory* memory = memory_of(buffer_of(operand), operand.buffer);
    if (memory == nullptr) return;
    const bool is_of_own_points = follows_writer(step, k);
    for (const Run& run : accesses_[k].walk->runs) {
      memory->visit(run, [&](Bytes& bytes) {
        if (bytes.owner != operand.buffer)
          throw Fault{fmt::format("operand {} reads bytes that it never got, or lost to another buffer", k)};
        if (bytes.written == epoch_ && !is_of_own_points)
          throw Fault{fmt::format("operand {} reads what no barrier separates from its writer", k)};
        // Of two readers since the last barrier the later would hide the earlier: then no single one is to
        // blame.
        bytes.reader = bytes.read == epoch_ && bytes.reader != step_ ? kSeveral : step_;
        bytes.read = epoch_;
      });
    }
  }

  /// Whether a step that follows another reads in operand k, at each point, what that one wrote at the same
  /// point. Its write was proved to be the only one since the last barrier.
  bool follows_writer(const Step& step, std::size_t k) const {
    if (!step.follows || !accesses_[k].form.own) return false;
    const Step& before = plan_.steps[step_ - 1];
    for (std::size_t j = before.first_output(); j < before.operands.size(); ++j) {
      if (before.operands[j].buffer == step.operands[k].buffer &&
          same_elements(step.operands[k], before.operands[j], accesses_[k].form))
        return true;
    }
    return false;
  }

  void note_write(const Step& step, std::size_t k) {
    const Operand& operand = step.operands[k];
    if (!accesses_[k].walk) return;
    Memory* memory = memory_of(buffer_of(operand), operand.buffer);
    if (memory == nullptr) throw Fault{"an input of the plan is written"};
    bool own_reads = false;
    for (const Run& run : accesses_[k].walk->runs) {
      memory->visit(run, [&](Bytes& bytes) {
        if (bytes.written == epoch_)
          throw Fault{fmt::format("operand {} overwrites what no barrier separates from its writer", k)};
        if (bytes.read != epoch_) return;
        if (bytes.reader != step_)
          throw Fault{fmt::format("operand {} overwrites what no barrier separates from its reader", k)};
        own_reads = true;
      });
    }
    if (own_reads && !may_overwrite_own_reads(step, k))
      throw Fault{fmt::format("operand {} overwrites what the step itself reads", k)};
    for (const Run& run : accesses_[k].walk->runs)
      memory->assign(run, {.owner = operand.buffer, .written = epoch_});
  }

  /// The points of a step run in any order, so writing over an operand is right only where each point (or
  /// row) reads the very element that it writes, and no other operand has it. An accumulation does by nature.
  bool may_overwrite_own_reads(const Step& step, std::size_t written) const {
    for (std::size_t k = 0; k < accesses_.size(); ++k) {
      const Access& from = accesses_[k];
      const Access& to = accesses_[written];
      if (from.form.role != OperandRole::read || !from.walk) continue;
      if (!same_space(buffer_of(step.operands[k]), buffer_of(step.operands[written]))) continue;
      if (!verify::meet(from.walk->runs, to.walk->runs)) continue;
      if (!from.form.own || !to.form.own || !same_elements(step.operands[k], step.operands[written], to.form))
        return false;
    }
    return true;
  }

  /// Whether both operands have the same element at every point.
  bool same_elements(const Operand& a, const Operand& b, const OperandForm& form) const {
    const PlanBuffer& left = buffer_of(a);
    const PlanBuffer& right = buffer_of(b);
    const auto size = static_cast<std::int64_t>(size_of(left.dtype));
    if (size != static_cast<std::int64_t>(size_of(right.dtype)) || a.position != b.position) return false;
    if (left.arena_offset + a.offset * size != right.arena_offset + b.offset * size) return false;
    for (int d = 0; d < form.extents.rank(); ++d) {
      if (form.extents[d] > 1 && a.strides[d] != b.strides[d]) return false;
    }
    return true;
  }

  void check_outputs() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      outputs_[k].visit({0, outputs_[k].size()}, [&](Bytes& bytes) {
        if (bytes.owner < 0) throw Fault{fmt::format("output {} is not written in full", k)};
      });
    }
  }

  const Plan& plan_;
  Memory arena_;
  std::vector<Memory> outputs_;
  std::vector<Access> accesses_;  // of the current step
  std::optional<verify::DonationCheck> donations_;
  std::size_t step_ = 0;
  std::uint64_t epoch_ = 1;
};

}  // namespace

void verify_plan(const Plan& plan) { Verifier(plan).run(); }

}  // namespace caldera
