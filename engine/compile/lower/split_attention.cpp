#include "engine/compile/lower/split_attention.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

/// Dimensions of a step, counted from the innermost.
enum : int { kQueries = 4, kKeys = 3, kHead = 2, kValue = 1 };
/// The operands of a forward step that are named, and its outputs from the first one on.
enum : std::size_t { kQ, kK, kV, kRows };
enum : std::size_t { kO, kHighest, kTotal };

class Splitter {
 public:
  Splitter(Plan& plan, const DeviceTraits& traits) : plan_(plan), traits_(traits) {
    touches_.assign(plan.buffers.size(), 0);
    for (const Step& step : plan.steps) {
      for (const Operand& operand : step.operands) {
        if (operand.buffer >= 0) ++touches_[static_cast<std::size_t>(operand.buffer)];
      }
    }
  }

  void run() {
    std::vector<Step> steps = std::move(plan_.steps);
    plan_.steps.clear();
    plan_.steps.reserve(steps.size());
    for (Step& step : steps) {
      auto* attention = step.if_a<AttentionStep>();
      if (attention == nullptr || attention->pass != AttentionPass::forward || step.dims.numel() == 0 ||
          extent(step, kKeys) < kManyKeys) {
        plan_.steps.push_back(std::move(step));
        continue;
      }
      join_heads(step);
      const std::int64_t length = part_length(step);
      if (length < extent(step, kKeys))
        split(std::move(step), length);
      else
        plan_.steps.push_back(std::move(step));
    }
  }

 private:
  static std::int64_t extent(const Step& step, int from_inner) {
    return step.dims[step.dims.rank() - from_inner];
  }

  /// The innermost batch dimension becomes that of the queries, where there is one query and keys and values
  /// are the same all along it.
  static void join_heads(Step& step) {
    const int rank = step.dims.rank();
    const int heads = rank - kQueries - 1, queries = rank - kQueries;
    if (heads < 0 || step.dims[queries] != 1 || step.dims[heads] > kMostJoinedHeads) return;
    if (step.operands[kK].strides[heads] != 0 || step.operands[kV].strides[heads] != 0) return;
    if (step.as<AttentionStep>().stored.rows > 0 && step.operands[kRows].strides[heads] != 0) return;
    step.as<AttentionStep>().causal.one_query = true;
    step.dims.erase(queries);
    for (Operand& operand : step.operands) operand.strides.erase(queries);
  }

  /// How many keys a part has: all of them, where splitting wins nothing.
  std::int64_t part_length(const Step& step) const {
    const std::int64_t keys = extent(step, kKeys);
    if (!step.as<AttentionStep>().stored.is_plain()) return keys;
    if (step.dims.rank() >= kMaxRank || extent(step, kQueries) > kFewQueries || !is_alone(step)) return keys;
    std::int64_t heads = 1;
    for (int d = 0; d < step.dims.rank() - kQueries; ++d) heads *= step.dims[d];
    const std::int64_t wanted =
        std::min(kGroupsOfUnit * traits_.compute_units / heads, keys / kShortestKeyPart);
    if (wanted < 2) return keys;
    // A remainder is a dispatch of its own: parts of one length, if there are nearly as many.
    for (std::int64_t parts = wanted; 2 * parts > wanted; --parts) {
      if (keys % parts == 0) return keys / parts;
    }
    return (keys / wanted + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
  }
  /// Whether nobody else reads what the step leaves of each row.
  bool is_alone(const Step& step) const {
    for (const std::size_t row : {kHighest, kTotal}) {
      const auto buffer = static_cast<std::size_t>(step.operands[step.first_output() + row].buffer);
      if (plan_.buffers[buffer].role != BufferRole::arena || touches_[buffer] != 1) return false;
    }
    return true;
  }

  std::int32_t scalar(float value) {
    plan_.scalars.push_back(DType::f32);
    plan_.constants.push_back(std::bit_cast<std::uint32_t>(value));
    return static_cast<std::int32_t>(plan_.scalars.size()) - 1;
  }
  std::int32_t buffer(std::int64_t elements) {
    plan_.buffers.push_back({BufferRole::arena, DType::f32, 4 * elements, 0});
    return static_cast<std::int32_t>(plan_.buffers.size()) - 1;
  }

  /// Parts of `length` keys, and what is left over as one more: dense results (part, batch..., m, e) and
  /// (part, batch..., m).
  void split(Step step, std::int64_t length) {
    const int rank = step.dims.rank();
    const std::int64_t keys = extent(step, kKeys), parts = keys / length, rest = keys % length;
    const std::int64_t columns = parts + (rest > 0 ? 1 : 0);
    Shape rows(step.dims.span().first(static_cast<std::size_t>(rank - kKeys)));
    const std::int64_t count = rows.numel(), e = extent(step, kValue);
    const Operand result = step.operands[step.first_output() + kO];

    // The rows' own buffers hold those of the parts; their results have a buffer more.
    Operand* const outputs = step.operands.data() + step.first_output();
    outputs[kO] = {buffer(columns * count * e), 0, Dims::filled(rank, 0)};
    for (const std::size_t row : {kHighest, kTotal}) {
      outputs[row] = {outputs[row].buffer, 0, Dims::filled(rank, 0)};
      plan_.buffers[static_cast<std::size_t>(outputs[row].buffer)].bytes = 4 * columns * count;
    }
    const Dims dense = rows.strides();
    for (int d = 0; d < rows.rank(); ++d) {
      outputs[kO].strides[d] = dense[d] * e;
      outputs[kHighest].strides[d] = outputs[kTotal].strides[d] = dense[d];
    }
    outputs[kO].strides[rank - kValue] = 1;
    Step sum = sum_of(step, result, columns, count);

    Step last = step;
    step.dims[rank - kKeys] = length;
    step.dims.insert(0, parts);
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      Operand& operand = step.operands[k];
      operand.strides.insert(0, k < step.first_output() ? operand.strides[rank - kKeys] * length
                                                        : count * (k == step.first_output() ? e : 1));
    }
    CausalMask& causal = step.as<AttentionStep>().causal;
    if (causal.fill >= 0) causal.in_parts = parts > 1;  // a dimension of one part is none
    plan_.steps.push_back(std::move(step));
    if (rest > 0) {
      last.dims[rank - kKeys] = rest;
      for (std::size_t k = 0; k < last.operands.size(); ++k) {
        Operand& operand = last.operands[k];
        operand.offset += k < last.first_output() ? operand.strides[rank - kKeys] * length * parts
                                                  : parts * count * (k == last.first_output() ? e : 1);
      }
      last.as<AttentionStep>().causal.offset -= parts * length;
      last.nodes.clear();
      plan_.steps.push_back(std::move(last));
    }
    plan_.steps.push_back(std::move(sum));
  }

  /// The step that adds up the parts whose results `step` says, before it has a dimension of parts.
  Step sum_of(const Step& step, const Operand& result, std::int64_t columns, std::int64_t count) {
    const int rank = step.dims.rank();
    Step sum;
    sum.dtype = plan_.buffers[static_cast<std::size_t>(result.buffer)].dtype;
    sum.dims = Shape(step.dims.span().first(static_cast<std::size_t>(rank - kKeys)));
    sum.dims.push_back(extent(step, kValue));
    sum.dims.push_back(columns);
    sum.label = step.label;
    const auto over = [&](const Operand& operand, std::int64_t part) {
      Operand out{operand.buffer, operand.offset, {}, operand.position};
      for (int d = 0; d < rank - kKeys; ++d) out.strides.push_back(operand.strides[d]);
      out.strides.push_back(operand.strides[rank - kValue]);
      out.strides.push_back(part);
      return out;
    };
    const Operand* const outputs = step.operands.data() + step.first_output();
    sum.operands = {over(outputs[kHighest], count), over(outputs[kTotal], count),
                    over(outputs[kO], count * extent(step, kValue)), over(result, 0)};
    sum.scalars = {scalar(-std::numeric_limits<float>::infinity()), scalar(0)};
    sum.work = RegionStep{.kernel = sum_kernel(sum.dtype), .reduce_rank = 1};
    return sum;
  }

  /// sum_p w_p o_p / sum_p w_p with w_p = total_p exp(highest_p - max_p highest_p). Parts without a score
  /// above -infinity weigh nothing; where there are only such, the result is not a number.
  std::shared_ptr<const Kernel> sum_kernel(DType type) {
    std::shared_ptr<const Kernel>& known = kernels_[is_half(type) ? (type == DType::f16 ? 1 : 2) : 0];
    if (known) return known;
    constexpr DType f = DType::f32;
    Kernel kernel;
    kernel.name = "sum of parts of attention";
    kernel.inputs = {f, f, f};
    kernel.scalars = {f, f};
    kernel.code = {
        {ScalarOp::load, f, 0},                   // 0: highest
        {ScalarOp::load, f, 1},                   // 1: total
        {ScalarOp::load, f, 2},                   // 2: o
        {ScalarOp::scalar, f, 0},                 // 3: -infinity
        {ScalarOp::scalar, f, 1},                 // 4: 0
        {ScalarOp::row_maximum, f, 0},            // 5
        {ScalarOp::sub, f, 0, 5},                 // 6
        {ScalarOp::exp, f, 6},                    // 7
        {ScalarOp::mul, f, 1, 7},                 // 8
        {ScalarOp::equal, DType::boolean, 0, 3},  // 9: there is nothing
        {ScalarOp::select, f, 9, 4, 8},           // 10: w
        {ScalarOp::mul, f, 10, 2},                // 11
        {ScalarOp::select, f, 9, 4, 11},          // 12
        {ScalarOp::row_sum, f, 10},               // 13
        {ScalarOp::row_sum, f, 12},               // 14
        {ScalarOp::div, f, 14, 13},               // 15
    };
    kernel.outputs = {{15, type}};
    kernel.finish();
    known = std::make_shared<const Kernel>(std::move(kernel));
    return known;
  }

  Plan& plan_;
  const DeviceTraits& traits_;
  std::vector<int> touches_;                  // operands that name each buffer
  std::shared_ptr<const Kernel> kernels_[3];  // by the type of the result: f32, f16, bf16
};

}  // namespace

void split_attention(Plan& plan, const DeviceTraits& traits) { Splitter(plan, traits).run(); }

}  // namespace caldera
