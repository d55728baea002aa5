// Derivatives of a function within the body of a loop or branch. Internal to engine/control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/call_rule.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The cotangents of those arguments of `function` that `targets` numbers (floating ones), for these of its
/// results, of which empty ones are zero. Zeros where nothing comes back.
std::vector<LazyTensor> pulled_back(const VectorFunction& function, std::span<const LazyTensor> arguments,
                                    std::span<const std::size_t> targets,
                                    std::span<const LazyTensor> cotangents, std::string_view transform);

/// The results of `function`, and behind them the tangents of those that `floating` numbers, for tangents of
/// the arguments that `targets` numbers.
std::vector<LazyTensor> with_tangents(const VectorFunction& function, std::span<const LazyTensor> arguments,
                                      std::span<const std::size_t> targets,
                                      std::span<const LazyTensor> tangents,
                                      std::span<const std::size_t> floating, std::string_view transform);

/// The cotangents of the floating arguments of a call whose results are those of `function`.
Cotangents cotangents_by(const VectorFunction& function, const Call& call,
                         std::span<const LazyTensor> cotangents, std::string_view transform);

/// The numbers of those tensors that are floating, each `first` more.
std::vector<std::size_t> floating_among(std::span<const LazyTensor> tensors, std::size_t first = 0);

/// Calls of loops and branches, which are mapped as a whole.
class ControlRule : public CallRule {
 public:
  explicit ControlRule(std::string title) : title_(std::move(title)) {}
  std::string title() const override { return title_; }
  std::vector<Batched> mapped_results(std::span<const Batched> arguments,
                                      std::int64_t examples) const override = 0;

 private:
  std::string title_;
};

/// The results of a call that computes `function`, and which is differentiated as `equivalent`, which
/// computes the same.
std::vector<LazyTensor> differentiated_as(std::string title, VectorFunction function,
                                          VectorFunction equivalent, std::span<const LazyTensor> arguments);

}  // namespace caldera
