// A plan built by hand, its data, and the comparison of a device with the reference.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/compile/plan.h"
#include "tests/support/reference_plan.h"

namespace caldera::testing {

/// How far a device may be from the reference: |a - b| <= absolute + relative |b|. Integers must be equal.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

/// Values for random data of floating types: uniform in [low, high), never 0.
struct Range {
  double low = -4;
  double high = 4;
};

class PlanCase {
 public:
  explicit PlanCase(Device device, std::uint32_t seed = 1) : random_(seed) { plan_->device = device; }

  // Buffers: inputs first, then outputs, then arena. Each call gives the buffer's number.
  int input(DType type, std::int64_t elements, Range range = {});
  int output(DType type, std::int64_t elements);  // holds a pattern that is NaN in floating types
  int output_with_data(DType type, std::int64_t elements);
  int arena(DType type, std::int64_t elements);
  int scalar(DType type, Number value);

  /// Overwrites an element of a buffer.
  void set(int buffer, std::int64_t element, Number value);

  /// Adds a step. The reference to it is good until the next.
  Step& region(std::shared_ptr<const Kernel> kernel, std::initializer_list<std::int64_t> dims,
               std::vector<Operand> operands, int reduce_rank = 0);
  Step& step(StepKind kind, DType type, std::initializer_list<std::int64_t> dims,
             std::vector<Operand> operands);

  /// Runs the plan on the device and on the reference; reports the first elements that differ.
  void check(Tolerance tolerance = {}) const;
  /// Outputs as the device computes them.
  std::vector<std::vector<std::byte>> run_on_device() const;

  Plan& plan() { return *plan_; }
  std::mt19937& random() { return random_; }

 private:
  int add_buffer(BufferRole role, DType type, std::int64_t elements);
  void fill_random(int buffer, Range range);

  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  PlanMemory memory_;
  std::mt19937 random_;
};

/// A view: buffer, offset, strides.
Operand view(int buffer, std::initializer_list<std::int64_t> strides, std::int64_t offset = 0);

/// A kernel of one operation on loads: out = op(in0, in1, ...), all of type `operand`.
std::shared_ptr<Kernel> one_op_kernel(ScalarOp op, DType operand, DType result);
/// A reduction of one input.
std::shared_ptr<Kernel> reduce_kernel(Combine combine, DType type);

}  // namespace caldera::testing
