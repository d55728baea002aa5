#include "engine/plan/cost.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace caldera {
namespace {

constexpr std::array<std::string_view, 8> kKindNames{
    "region",           "contract",          "gather", "scatter_add", "attention",
    "attention_grad_q", "attention_grad_kv", "linalg"};

/// Whether an instruction computes: it is neither a source nor a comparison, selection, cast or random bits.
bool is_arithmetic(const Instruction& i) {
  if (info(i.op).arity == 0 || info(i.op).gives_boolean) return false;
  switch (i.op) {
    case ScalarOp::cast:
    case ScalarOp::select:
    case ScalarOp::logical_not:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::logical_xor:
    case ScalarOp::philox_uniform:
    case ScalarOp::philox_normal:
      return false;
    default:
      return true;
  }
}

std::int64_t arithmetic_count(const Kernel& kernel) {
  return std::count_if(kernel.code.begin(), kernel.code.end(), is_arithmetic);
}

std::int64_t kernel_flops(const Kernel& kernel, std::int64_t points, std::int64_t rows) {
  const KernelLevels level = levels(kernel);
  std::int64_t flops = kernel.reduce && is_floating(kernel.outputs[0].type) ? points : 0;
  for (std::size_t v = 0; v < kernel.code.size(); ++v) {
    if (!is_arithmetic(kernel.code[v]) || !is_floating(kernel.code[v].type)) continue;
    const bool once_a_row = level.per_row[v] && !is_row_reduction(kernel.code[v].op);
    flops += once_a_row ? rows : points;
  }
  return flops;
}

std::int64_t product(const Shape& dims, int first, int last) {
  std::int64_t n = 1;
  for (int d = first; d < last; ++d) n *= dims[d];
  return n;
}

/// Pairs of a query and a key that the mask leaves, of one batch entry.
std::int64_t visible_pairs(const Step& step, std::int64_t queries, std::int64_t keys) {
  if (step.causal.fill < 0 || step.causal.offset_scalar >= 0) return queries * keys;
  std::int64_t pairs = 0;
  for (std::int64_t m = 0; m < queries; ++m)
    pairs += std::clamp<std::int64_t>(m + step.causal.offset + 1, 0, keys);
  return pairs;
}

std::int64_t attention_flops(const Step& step) {
  const int rank = step.dims.rank();
  const std::int64_t keys = step.dims[rank - 3];
  const std::int64_t d = step.dims[rank - 2];
  const std::int64_t e = step.dims[rank - 1];
  const std::int64_t pairs = product(step.dims, 0, rank - 4) * visible_pairs(step, step.dims[rank - 4], keys);
  std::int64_t flops = kernel_flops(*step.kernel, pairs, pairs);
  if (step.kind == StepKind::attention) return flops + pairs * (2 * d + 2 * e + 3);  // subtract, exp, sum
  // Scores, P (subtract, exp, divide), dP, dS; then dq, or dk and dv.
  flops += pairs * (2 * d + 2 * e + 5);
  if (step.gradient) flops += kernel_flops(*step.gradient, pairs, pairs);
  return flops + pairs * (step.kind == StepKind::attention_grad_q ? 2 * d : 2 * d + 2 * e);
}

/// The leading terms of Golub and Van Loan's counts (Matrix Computations, 4th edition).
std::int64_t linalg_flops(const Step& step) {
  const std::int64_t m = std::max(step.dims[1], step.dims[2]);
  const std::int64_t n = std::min(step.dims[1], step.dims[2]);
  const std::int64_t lu = 2 * n * n * n / 3;
  const auto flops = [&]() -> std::int64_t {
    switch (step.routine) {
      case MatrixRoutine::cholesky:
        return n * n * n / 3;
      case MatrixRoutine::solve:
        return lu + 2 * n * n * step.dims[3];
      case MatrixRoutine::solve_triangular:
        return n * n * step.dims[3];
      case MatrixRoutine::inv:
        return 2 * n * n * n;
      case MatrixRoutine::det:
      case MatrixRoutine::slogdet:
        return lu;
      case MatrixRoutine::qr:
        return 4 * n * n * (m - n / 3);
      case MatrixRoutine::svdvals:
        return 4 * m * n * n - 4 * n * n * n / 3;
      case MatrixRoutine::eigvalsh:
        return 4 * n * n * n / 3;
      case MatrixRoutine::eigh:
        return 9 * n * n * n;
      case MatrixRoutine::svd:
      case MatrixRoutine::cofactor:
      case MatrixRoutine::pinv:
        return 6 * m * n * n + 20 * n * n * n;
    }
    return 0;
  };
  return step.dims[0] * flops();
}

std::int64_t flops_of(const Step& step) {
  const int rank = step.dims.rank();
  switch (step.kind) {
    case StepKind::region:
      return kernel_flops(*step.kernel, step.dims.numel(), product(step.dims, 0, rank - step.reduce_rank));
    case StepKind::contract: {
      const std::int64_t results = product(step.dims, 0, rank - 1);
      std::int64_t flops = 0;
      for (const Segment& segment : step.segments)
        flops += results * (2 * segment.k + (segment.scale >= 0 ? 1 : 0));
      return flops + (step.kernel ? kernel_flops(*step.kernel, results, results) : 0);
    }
    case StepKind::gather:
      return 0;
    case StepKind::scatter_add:
      return is_floating(step.dtype) ? step.dims.numel() : 0;
    case StepKind::linalg:
      return linalg_flops(step);
    case StepKind::attention:
    case StepKind::attention_grad_q:
    case StepKind::attention_grad_kv:
      return attention_flops(step);
  }
  return 0;
}

/// Elements of an operand that the step touches.
std::int64_t elements_touched(const Step& step, std::size_t k) {
  const Operand& operand = step.operands[k];
  const Shape dims = step.operand_dims(k);
  std::int64_t elements = 1;
  for (int d = 0; d < dims.rank(); ++d)
    elements *= operand.strides[d] == 0 ? std::min<std::int64_t>(dims[d], 1) : dims[d];
  const bool indexed = (step.kind == StepKind::gather && k == 0) ||
                       (step.kind == StepKind::scatter_add && k + 1 == step.operands.size());
  // At most one element of the axis for every index.
  return indexed ? elements * std::min(step.axis_extent, step.dims[1]) : elements;
}

}  // namespace

StepCost cost_of(const Plan& plan, const Step& step) {
  StepCost cost;
  cost.flops = flops_of(step);
  cost.ops = static_cast<std::int64_t>(step.nodes.size());
  if (step.nodes.empty()) {
    cost.ops = step.kind == StepKind::region ? (step.kernel->reduce ? 1 : 0) : 1;
    if (step.kernel) cost.ops += arithmetic_count(*step.kernel);
    if (step.gradient) cost.ops += arithmetic_count(*step.gradient);
  }

  const std::size_t outputs = static_cast<std::size_t>(step.output_count());
  const std::size_t first_output = step.operands.size() - outputs;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const Operand& operand = step.operands[k];
    if (operand.buffer < 0) continue;
    const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(operand.buffer)];
    const std::int64_t bytes =
        std::min(elements_touched(step, k) * static_cast<std::int64_t>(size_of(buffer.dtype)), buffer.bytes);
    const bool is_output = k >= first_output;
    if (is_output) {
      cost.written_bytes += bytes;
      if (buffer.role == BufferRole::arena) cost.scratch_bytes += bytes;
    }
    if (is_output && step.kind != StepKind::scatter_add) continue;
    const auto same = [&](const Operand& other) {
      return other.buffer == operand.buffer && other.offset == operand.offset &&
             other.strides == operand.strides;
    };
    const auto begin = step.operands.begin();
    if (std::none_of(begin, begin + static_cast<std::ptrdiff_t>(k), same)) cost.read_bytes += bytes;
  }
  return cost;
}

std::string_view name(StepKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

}  // namespace caldera
