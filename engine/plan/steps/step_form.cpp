#include "engine/plan/steps/step_form.h"

#include <fmt/core.h>

namespace caldera::verify {
namespace {

/// Lists the operands that a step of each kind has.
class Describer {
 public:
  Describer(const Plan& plan, const Step& step) : plan_(plan), step_(step), rank_(step.dims.rank()) {}

  std::vector<OperandForm> run() {
    for (std::int64_t extent : step_.dims) {
      if (extent < 0) throw Fault{"a negative extent"};
    }
    if (step_.reduce_rank < 0 || step_.reduce_rank > rank_)
      throw Fault{"more reduced dimensions than there are"};
    check_what_others_have();
    switch (step_.kind) {
      case StepKind::region:
        describe_region();
        break;
      case StepKind::contract:
        describe_contraction();
        break;
      case StepKind::gather:
      case StepKind::scatter_add:
        describe_indexed();
        break;
      case StepKind::linalg:
        describe_linalg();
        break;
      case StepKind::attention:
      case StepKind::attention_grad_q:
      case StepKind::attention_grad_kv:
        describe_attention();
        break;
    }
    check_scalars();
    return std::move(forms_);
  }

 private:
  /// Dimension `i` counted from the innermost, which is 1.
  DimSet inner(int i) const { return DimSet{1} << (rank_ - i); }
  DimSet all() const { return (DimSet{1} << rank_) - 1; }
  bool is_attention() const {
    return step_.kind == StepKind::attention || step_.kind == StepKind::attention_grad_q ||
           step_.kind == StepKind::attention_grad_kv;
  }

  /// What only some kinds of step have is absent from the others.
  void check_what_others_have() const {
    const bool region = step_.kind == StepKind::region;
    const bool contract = step_.kind == StepKind::contract;
    const bool backward = is_attention() && step_.kind != StepKind::attention;
    if (step_.kernel == nullptr && region) throw Fault{"a region without a kernel"};
    if (step_.kernel == nullptr && is_attention()) throw Fault{"attention without a kernel"};
    if (step_.kernel != nullptr && !region && !contract && !is_attention())
      throw Fault{"a kernel that the step has no use for"};
    if ((step_.gradient != nullptr) != backward)
      throw Fault{"the kernel of a gradient does not fit the step"};
    if (!region && step_.reduce_rank != 0) throw Fault{"reduced dimensions do not fit the step"};
    if (contract == step_.segments.empty()) throw Fault{"segments do not fit the step"};
    if (step_.kind != StepKind::linalg && (step_.routine != MatrixRoutine{} || step_.routine_option))
      throw Fault{"a matrix routine without matrices"};
    const CausalMask& causal = step_.causal;
    if (!is_attention() && (causal.fill != -1 || causal.offset_scalar != -1))
      throw Fault{"a causal mask without attention"};
    if (rank_ < (region ? 0 : is_attention() ? 4 : 3)) throw Fault{"too few dimensions"};
  }

  OperandForm& add(OperandRole role, DType type, DimSet walked, DimSet needed, bool own = false) {
    forms_.push_back(
        {.role = role, .type = type, .extents = step_.dims, .walked = walked, .needed = needed, .own = own});
    return forms_.back();
  }
  void read(DType type, DimSet walked, DimSet needed) { add(OperandRole::read, type, walked, needed); }
  void write(DType type, DimSet walked) { add(OperandRole::written, type, walked, walked); }

  /// The inputs of an element-wise kernel that are operands, and its index operands.
  void add_kernel_operands(const Kernel& kernel, std::size_t given, DimSet points) {
    for (std::size_t i = given; i < kernel.inputs.size(); ++i)
      add(OperandRole::read, kernel.inputs[i], points, points, true);
    for (int i = 0; i < kernel.index_count; ++i) add(OperandRole::index, DType::i64, points, 0);
  }

  void describe_region() {
    const Kernel& kernel = *step_.kernel;
    check_kernel(kernel, true);
    bool rows = false;
    std::vector<bool> of_row(kernel.inputs.size(), false);
    for (const Instruction& i : kernel.code) {
      rows = rows || is_row_reduction(i.op);
      if (i.op == ScalarOp::load_row) of_row[i.a] = true;
    }
    if (kernel.reduce ? kernel.outputs.size() != 1 : !rows && step_.reduce_rank != 0)
      throw Fault{"reduced dimensions do not fit the kernel"};
    const DimSet kept = (DimSet{1} << (rank_ - step_.reduce_rank)) - 1;
    const bool own = !kernel.reduce;
    for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
      const DimSet walked = of_row[i] ? kept : all();
      add(OperandRole::read, kernel.inputs[i], walked, walked, own).moved =
          "an operand of the row varies along it";
    }
    for (int i = 0; i < kernel.index_count; ++i) add(OperandRole::index, DType::i64, all(), 0);
    const std::vector<bool> whole = row_values(kernel);
    for (const Kernel::Output& output : kernel.outputs) {
      const DimSet walked = kernel.reduce || (rows && whole[output.value]) ? kept : all();
      add(OperandRole::written, output.type, walked, walked, own).moved =
          kernel.reduce ? "the result of a reduction varies along a reduced dimension"
                        : "the result of a row varies along it";
    }
  }

  /// The type of operand k, which may be a 16-bit one where its values are f32.
  DType in_memory(std::size_t k, DType type) const {
    if (type != DType::f32 || k >= step_.operands.size()) return type;
    const auto buffer = static_cast<std::size_t>(step_.operands[k].buffer);
    if (buffer >= plan_.buffers.size() || !is_half(plan_.buffers[buffer].dtype)) return type;
    return plan_.buffers[buffer].dtype;
  }

  void describe_contraction() {
    if (is_memory_type(step_.dtype)) throw Fault{"a product of a type of memory"};
    const DimSet k = inner(1);
    if (step_.segments[0].k != step_.dims.back()) throw Fault{"the first segment is not the last extent"};
    for (const Segment& segment : step_.segments) {
      if (segment.k < 0) throw Fault{"a segment of negative length"};
      if (segment.scale != -1) check_scalar(segment.scale, step_.dtype);
      for (const DimSet missing : {inner(2), inner(3)}) {
        OperandForm& form =
            add(OperandRole::read, in_memory(forms_.size(), step_.dtype), all() & ~missing, all());
        form.extents[rank_ - 1] = segment.k;
      }
    }
    if (!step_.kernel) return write(step_.dtype, all() & ~k);
    const Kernel& kernel = *step_.kernel;
    check_kernel(kernel, false);
    check_given(kernel, 1, step_.dtype);
    add_kernel_operands(kernel, 1, all() & ~k);
    for (const Kernel::Output& output : kernel.outputs)
      add(OperandRole::written, output.type, all() & ~k, all() & ~k, true);
  }

  void describe_indexed() {
    const bool gather = step_.kind == StepKind::gather;
    if (rank_ != 3) throw Fault{"not the dimensions outer, indices, inner"};
    if (!gather && is_memory_type(step_.dtype)) throw Fault{"sums of a type of memory"};
    if (step_.axis_extent < 0) throw Fault{"a negative extent"};
    const DimSet around = inner(1) | inner(3);
    read(step_.dtype, gather ? around : all(), all());
    read(DType::i32, all(), all());
    add(OperandRole::written, step_.dtype, gather ? all() : around, all());
  }

  void describe_linalg() {
    if (rank_ != 5) throw Fault{"not the dimensions batch, M, N, K, P"};
    if (step_.dtype != DType::f32 && step_.dtype != DType::f64)
      throw Fault{"matrices of another type than float32 and float64"};
    const std::int64_t m = step_.dims[1];
    const std::int64_t n = step_.dims[2];
    const std::int64_t k = step_.dims[3];
    const MatrixRoutine routine = step_.routine;
    if (needs_square(routine) && m != n) throw Fault{"a routine for square matrices over others"};
    if (!has_right_side(routine) && k != 0) throw Fault{"a right side that the routine has no use for"};
    if (result_size(routine, step_.routine_option, m, n, k) != step_.dims[4])
      throw Fault{"results of another size than the routine's"};
    const DimSet batch = inner(5);
    read(step_.dtype, batch | inner(4) | inner(3), batch | inner(4) | inner(3));
    if (has_right_side(routine)) read(step_.dtype, batch | inner(4) | inner(2), batch | inner(4) | inner(2));
    write(step_.dtype, batch | inner(1));
  }

  void describe_attention() {
    const DimSet m = inner(4);
    const DimSet n = inner(3);
    const DimSet d = inner(2);
    const DimSet e = inner(1);
    const DimSet batch = all() & ~(m | n | d | e);
    const DimSet scores = batch | m | n;
    const bool forward = step_.kind == StepKind::attention;
    if (step_.dtype != DType::f32) throw Fault{"attention of another type than float32"};
    check_causal();
    const auto matrix = [&](DimSet walked, DimSet needed) {
      const DType type = in_memory(forms_.size(), DType::f32);
      if (forms_.empty() || type == forms_[0].type) return read(type, walked, needed);
      throw Fault{"attention over matrices of several types"};
    };
    const auto result = [&](DimSet walked) { write(in_memory(forms_.size(), DType::f32), walked); };
    matrix(batch | m | d, scores | d);  // q
    matrix(batch | n | d, scores | d);  // k
    matrix(batch | n | e, scores | e);  // v
    if (!forward) {
      matrix(batch | m | e, scores | e);    // go
      read(DType::f32, batch | m, scores);  // highest
      read(DType::f32, batch | m, scores);  // total
      read(DType::f32, batch | m, scores);  // delta
    }
    add_score(*step_.kernel, 1, scores);
    if (!forward) add_score(*step_.gradient, 2, scores);
    if (forward) {
      result(batch | m | e);
      write(DType::f32, batch | m);  // highest
      write(DType::f32, batch | m);  // total
    } else if (step_.kind == StepKind::attention_grad_q) {
      result(batch | m | d);
    } else {
      result(batch | n | d);
      result(batch | n | e);
      if (forms_.back().type != forms_[forms_.size() - 2].type)
        throw Fault{"attention with results of several types"};
    }
  }

  /// Of the kernel of a score or its gradient. Their operands are read all the while, so nothing may be
  /// written over them.
  void add_score(const Kernel& kernel, std::size_t given, DimSet scores) {
    check_kernel(kernel, false);
    check_given(kernel, given, DType::f32);
    if (kernel.outputs.size() != 1 || kernel.outputs[0].type != DType::f32)
      throw Fault{"a score that is not one number of float32"};
    const std::size_t first = forms_.size();
    add_kernel_operands(kernel, given, scores);
    for (std::size_t k = first; k < forms_.size(); ++k) forms_[k].own = false;
  }

  /// The first inputs of the kernel are no operands: the step computes them.
  static void check_given(const Kernel& kernel, std::size_t given, DType type) {
    if (kernel.inputs.size() < given) throw Fault{"a kernel without the input that the step gives it"};
    for (std::size_t i = 0; i < given; ++i) {
      if (kernel.inputs[i] != type) throw Fault{"a kernel whose given input has another type"};
    }
  }

  void check_causal() const {
    const CausalMask& causal = step_.causal;
    if (causal.fill != -1) check_scalar(causal.fill, DType::f32);
    if (causal.offset_scalar != -1) check_scalar(causal.offset_scalar, DType::i32);
  }

  void check_scalar(std::int32_t slot, DType type) const {
    if (slot < 0 || static_cast<std::size_t>(slot) >= plan_.scalars.size())
      throw Fault{"a scalar argument that does not exist"};
    if (plan_.scalars[static_cast<std::size_t>(slot)] != type)
      throw Fault{"a scalar argument of the wrong type"};
  }

  void check_scalars() const {
    std::vector<DType> types;
    for (const Kernel* kernel : {step_.kernel.get(), step_.gradient.get()}) {
      if (kernel != nullptr) types.insert(types.end(), kernel->scalars.begin(), kernel->scalars.end());
    }
    if (step_.kind == StepKind::linalg && has_tolerance(step_.routine)) types.push_back(step_.dtype);
    if (types.size() != step_.scalars.size()) throw Fault{"the wrong number of scalar arguments"};
    for (std::size_t i = 0; i < types.size(); ++i) check_scalar(step_.scalars[i], types[i]);
  }

  const Plan& plan_;
  const Step& step_;
  int rank_;
  std::vector<OperandForm> forms_;
};

void check_operand(const Plan& plan, std::size_t k, const Operand& operand, const OperandForm& form) {
  if (operand.strides.rank() != form.extents.rank())
    throw Fault{fmt::format("operand {} has the wrong rank", k)};
  if (form.role == OperandRole::index) {
    if (operand.buffer != -1) throw Fault{fmt::format("index operand {} names a buffer", k)};
  } else {
    if (operand.buffer < 0 || static_cast<std::size_t>(operand.buffer) >= plan.buffers.size())
      throw Fault{fmt::format("operand {} names a buffer that does not exist", k)};
    if (plan.buffers[static_cast<std::size_t>(operand.buffer)].dtype != form.type)
      throw Fault{fmt::format("operand {} has the wrong type", k)};
  }
  for (int d = 0; d < operand.strides.rank(); ++d) {
    if (operand.strides[d] == 0 || (form.walked >> d & 1U) != 0) continue;
    if (form.moved != nullptr) throw Fault{form.moved};
    throw Fault{fmt::format("operand {} varies along dimension {}, which it lacks", k, d)};
  }
}

}  // namespace

std::vector<OperandForm> check_form(const Plan& plan, const Step& step) {
  std::vector<OperandForm> forms = Describer(plan, step).run();
  if (step.operands.size() != forms.size()) throw Fault{"the wrong number of operands"};
  for (std::size_t k = 0; k < forms.size(); ++k) check_operand(plan, k, step.operands[k], forms[k]);
  if (step.causal.fill != -1) check_causal_score(step);
  return forms;
}

}  // namespace caldera::verify
