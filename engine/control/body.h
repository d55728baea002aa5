// Body: a function that a loop or branch runs, called once on stand-ins for its arguments. Internal to
// engine/control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/compile/program/control_flow.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The graph that the function built, closed: what it captured from outside are further parameters. A value
/// type; immutable.
class Body {
 public:
  /// Calls `function` on stand-ins for tensors `like` these. Numbers that it returns become tensors. Throws
  /// ValueError that names `title` for an empty result.
  Body(const VectorFunction& function, std::span<const LazyTensor> like, std::string_view title);

  /// Stands for the arguments, and then for what was captured: of use for their types.
  std::span<const LazyTensor> parameters() const { return parameters_; }
  std::span<const LazyTensor> results() const { return results_; }
  /// The tensors that it captured: behind the arguments, it has a parameter for each.
  std::span<const LazyTensor> captured() const { return captured_; }

  /// The results for these values of all parameters: a copy of the graph, which all transforms may be applied
  /// to.
  std::vector<LazyTensor> operator()(std::span<const LazyTensor> values) const;

  /// The program that computes the results `wanted`, in that order. Appends to `numbers` the numbers that it
  /// takes and that are not there yet, and to `hash` what tells it from others. `of` says for each parameter
  /// which one of the step it is.
  ControlPart part(std::span<const std::uint32_t> wanted, std::span<const std::uint32_t> of,
                   std::vector<LazyTensor>& numbers, Hash128& hash) const;

 private:
  void close();

  std::vector<LazyTensor> parameters_;  // stand-ins
  std::vector<LazyTensor> captured_;
  std::vector<LazyTensor> results_;
};

/// 0, 1 ... count - 1, each `first` more.
std::vector<std::uint32_t> numbered(std::size_t count, std::uint32_t first = 0);
/// The lists one behind the other.
std::vector<LazyTensor> joined(std::initializer_list<std::span<const LazyTensor>> lists);

}  // namespace caldera
