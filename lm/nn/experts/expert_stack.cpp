#include "lm/nn/experts/expert_stack.h"

#include <algorithm>
#include <string>

#include "engine/runtime/runtime.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/ranges.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

constexpr std::array<std::string_view, 3> kMatrixNames{"gate_proj.weight", "up_proj.weight",
                                                       "down_proj.weight"};

/// Finds the three matrices of an expert, and whether there is anything else.
class MatrixFinder final : public ParameterVisitor {
 public:
  void parameter(const std::string& name, Weight& weight) override {
    if (weight.tensor.defined() || weight.is_quantized()) take(name, weight);
  }
  void matrix(const std::string& name, Weight& weight) override { take(name, weight); }

  /// Null where it has not just these.
  const std::array<Weight*, 3>* found() const {
    const bool all = std::ranges::none_of(found_, [](const Weight* w) { return w == nullptr; });
    return all && !others_ ? &found_ : nullptr;
  }

 private:
  void take(const std::string& name, Weight& weight) {
    const auto place = std::ranges::find(kMatrixNames, name);
    if (place == kMatrixNames.end()) {
      others_ = true;
      return;
    }
    Weight*& to = found_[static_cast<std::size_t>(place - kMatrixNames.begin())];
    others_ = others_ || to != nullptr;
    to = &weight;
  }

  std::array<Weight*, 3> found_{};
  bool others_ = false;
};

/// The tensors that a matrix is kept in.
std::vector<LazyTensor> parts_of_weight(const Weight& weight) {
  if (weight.is_quantized()) return weight.quantized.parts;
  return {weight.tensor};
}

QuantizedLayout layout_of(const Weight& weight) {
  if (weight.is_quantized()) return weight.quantized.layout;
  const DType type = weight.tensor.dtype();
  return {.format = type == DType::f16    ? QuantizedFormat::f16
                    : type == DType::bf16 ? QuantizedFormat::bf16
                                          : QuantizedFormat::f32};
}

/// Whether it can be one of a stack: it never changes, and is in memory.
bool is_fixed(const Weight& weight) {
  if (!weight.is_quantized() &&
      (weight.trainable || weight.base.defined() || !weight.tensor.defined() ||
       compute_type(weight.tensor.dtype()) != DType::f32 || weight.tensor.rank() != 2))
    return false;
  if (weight.shape().rank() != 2) return false;
  const std::vector<LazyTensor> parts = parts_of_weight(weight);
  return std::ranges::all_of(parts, [](const LazyTensor& part) { return part.is_evaluated(); });
}

}  // namespace

ExpertRows ExpertRows::of(const LazyTensor& choices) {
  const std::int64_t tokens = choices.shape(0), chosen = choices.shape(1), rows = tokens * chosen;
  const LazyTensor all = reshape(choices, Shape{rows});
  const LazyTensor numbers = arange(rows, DType::i32, choices.device());
  if (tokens == 1) return {zeros_like(all), all, numbers};
  const LazyTensor order = argsort(all);
  return {floor_divide(order, static_cast<std::int32_t>(chosen)), take(all, order), argsort(order)};
}

bool ExpertStack::holds(std::span<const std::unique_ptr<Layer>> experts) {
  std::array<std::vector<Weight*>, 3> weights;
  for (const std::unique_ptr<Layer>& expert : experts) {
    MatrixFinder finder;
    expert->visit("", finder);
    const std::array<Weight*, 3>* found = finder.found();
    if (found == nullptr) return false;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i].push_back((*found)[i]);
  }
  if (experts.empty()) return false;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!is_current(i, weights[i]) && !stack(i, weights[i])) return false;
    const Weight& first = *weights[i].front();
    if (first.is_quantized()) matrices_[i].activations = first.quantized.activations;
  }
  return true;
}

/// Whether the matrix of expert e is the part of the whole that it was given.
bool ExpertStack::is_part(std::size_t which, std::size_t e, const Weight& weight) const {
  const std::vector<std::uint64_t>& nodes = nodes_[which];
  return e < nodes.size() && parts_of_weight(weight).at(0).defined() &&
         parts_of_weight(weight)[0].node_id() == nodes[e];
}

bool ExpertStack::is_current(std::size_t which, std::span<Weight* const> weights) const {
  if (nodes_[which].size() != weights.size()) return false;
  for (std::size_t e = 0; e < weights.size(); ++e)
    if (!is_part(which, e, *weights[e])) return false;
  return true;
}

bool ExpertStack::stack(std::size_t which, std::span<Weight* const> weights) {
  const Weight& first = *weights.front();
  const QuantizedLayout layout = layout_of(first);
  for (std::size_t e = 0; e < weights.size(); ++e) {
    const Weight& w = *weights[e];
    if (!is_part(which, e, w) && !is_fixed(w)) return false;
    if (layout_of(w) != layout || w.shape() != first.shape()) return false;
  }
  std::vector<LazyTensor> stacked;
  for (std::size_t p = 0; p < parts_of_weight(first).size(); ++p) {
    std::vector<LazyTensor> each;
    for (const Weight* w : weights) each.push_back(expand_dims(parts_of_weight(*w)[p], 0));
    stacked.push_back(concatenate(each, 0));
  }
  eval(stacked);
  const Shape shape = first.shape();
  const auto experts = static_cast<std::int64_t>(weights.size());
  matrices_[which] = quantized_tensor(layout, Shape{experts, shape[0], shape[1]}, stacked);
  // Parts of the whole from now on: what they were goes.
  nodes_[which].clear();
  for (std::int64_t e = 0; e < experts; ++e) {
    Weight& w = *weights[static_cast<std::size_t>(e)];
    const auto part = [&](const LazyTensor& of) {
      return reshape(slice(of, 0, e, e + 1), Shape{of.shape(1), of.shape(2)});
    };
    if (w.is_quantized())
      for (std::size_t p = 0; p < stacked.size(); ++p) w.quantized.parts[p] = part(stacked[p]);
    else
      w.tensor = part(stacked[0]);
    nodes_[which].push_back(parts_of_weight(w)[0].node_id());
  }
  return true;
}

}  // namespace caldera
