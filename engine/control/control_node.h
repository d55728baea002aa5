// Nodes of OpClass::control, made of bodies. Internal to engine/control.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compile/program/control_flow.h"
#include "engine/control/body.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A body as a part of a step.
struct BodyPart {
  const Body* body = nullptr;
  std::vector<std::uint32_t> parameters;  // of the step, for each of the body
  std::vector<std::uint32_t> results;     // of the body, in the order that the layout asks for
};

/// The results of a step of `layout` over `inputs`, which are its tensors in order (none a bare number), of
/// these types. Gradients do not pass: the step is differentiated by the call that holds it.
std::vector<LazyTensor> control_results(std::string_view name, const ControlLayout& layout,
                                        std::span<const LazyTensor> inputs, std::vector<TensorType> results,
                                        std::span<const BodyPart> parts);

/// The type of a tensor; with `rows`, of so many of it one after the other along a new first axis.
TensorType type_of(const LazyTensor& x);
TensorType stacked_type_of(const LazyTensor& x, std::int64_t rows);

/// The tensors that several bodies captured, each once, and where those of one of them are among them.
class Constants {
 public:
  /// Adds what is not there yet.
  std::vector<std::uint32_t> add(std::span<const LazyTensor> captured);
  const std::vector<LazyTensor>& tensors() const { return tensors_; }

 private:
  std::vector<LazyTensor> tensors_;
};

}  // namespace caldera
