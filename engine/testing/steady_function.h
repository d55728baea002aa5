// A function under a check, held to what its first call gave. Internal to gradcheck.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera::testing {

/// Why a check did not pass, on its way to the GradcheckResult that says so. Deliberately no caldera::Error,
/// which derivatives that cannot be made throw.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The floating tensors of a list, and where in it they are.
struct Floating {
  std::vector<std::size_t> positions;
  std::vector<LazyTensor> tensors;

  explicit Floating(std::span<const LazyTensor> all);
};

/// Calls the function and gives its floating results. Throws ValueError naming `caller` when the first call
/// gives none, or any call an empty tensor, and CheckFailed when a later one gives another number of results,
/// or others than the same shapes and dtypes: derivatives of two calls could not be compared. To be called
/// from one thread at a time.
class SteadyFunction {
 public:
  SteadyFunction(VectorFunction function, std::string caller)
      : function_(std::move(function)), caller_(std::move(caller)) {}

  Floating operator()(std::span<const LazyTensor> inputs);

 private:
  struct Form {
    Shape shape;
    DType dtype;
    bool operator==(const Form&) const = default;
  };

  void learn(const std::vector<Form>& forms);
  void compare(const std::vector<Form>& forms) const;

  VectorFunction function_;
  std::string caller_;
  std::vector<Form> first_;
};

}  // namespace caldera::testing
