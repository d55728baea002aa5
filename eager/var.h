// Var: a tensor that training changes, and gradients of eager functions with respect to such tensors.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "eager/tensor.h"

namespace caldera::v1 {

/// A shared cell that holds a tensor. Copies are the same variable: setting one sets all. Setting is not
/// synchronised with reading from other threads.
class Var {
 public:
  Var() = default;
  explicit Var(Tensor value) : cell_(std::make_shared<Tensor>(std::move(value))) {}

  bool defined() const { return static_cast<bool>(cell_); }
  /// Throws Error when empty.
  const Tensor& tensor() const;
  const Shape& shape() const { return tensor().shape(); }
  DType dtype() const { return tensor().dtype(); }
  /// Throws ShapeError, DTypeError or DeviceError unless the new value is of the same shape, dtype and
  /// device.
  void set(const Tensor& value) const;

  /// Whether it is one variable, not two of equal values.
  friend bool operator==(const Var& a, const Var& b) { return a.cell_ == b.cell_; }
  friend bool operator<(const Var& a, const Var& b) { return a.cell_.owner_before(b.cell_); }

 private:
  friend class VarBinding;
  std::shared_ptr<Tensor> cell_;
};

/// The value of a scalar-valued function of variables, and its gradient with respect to each of them. Inside
/// `loss`, eager calls on the variables (a layer's `forward`, fused or not) keep what the gradient needs:
///
///   auto [loss, grads] = value_and_grad([&] { return mse(layer.forward(x), y); },
///   layer.trainable_variables());
///
/// A variable that `loss` does not use gets zeros. Throws TrainingError (Gradient) when the result is not a
/// scalar, and GradientError when an operation on the way has no gradient. Not to be run by two threads at
/// once on the same variable.
std::pair<Tensor, std::vector<Tensor>> value_and_grad(const std::function<Tensor()>& loss,
                                                      std::span<const Var> variables);

}  // namespace caldera::v1
