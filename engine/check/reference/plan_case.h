// A plan built by hand, its data, and the comparison of a device with the reference.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/reference_plan.h"
#include "engine/check/reference/scalar_reference.h"
#include "engine/device/backend.h"
#include "engine/plan/plan.h"

namespace caldera::reference {

/// Bounds how far a device may be from the reference: |a - b| <= absolute + relative |b|. Integers must be
/// equal.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

/// A tolerance, and where it comes from.
struct Allowed {
  Tolerance tolerance;
  const char* source = "";
};

/// Values for random data of floating types: uniform in [low, high), never 0.
struct Range {
  double low = -4;
  double high = 4;
  bool whole = false;  // integers only, so that sums and products are exact
};

/// Holds what a device made of a plan.
struct DeviceRun {
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::string> damage;  // a line for each place that changed and must not: inputs, and bytes
                                    // around the bound buffers
};

/// A device beside the reference.
struct Comparison {
  /// Counts the elements of all outputs that differ by more than the tolerance.
  std::int64_t differing = 0;
  /// The largest difference in units of what was allowed: above 1 fails. Infinite where a NaN or an infinity
  /// is on one side only, and for integers and exact comparisons that differ.
  double worst = 0;
  /// The largest |got - want|, under the same rule.
  double difference = 0;
  /// Lines for people: the first elements that differ, and what of DeviceRun::damage.
  std::vector<std::string> complaints;

  bool good() const { return complaints.empty(); }
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

  // Steps. The reference to one is good until the next. Each has a barrier before it, and its scalar
  // arguments are those of the plan in order, unless they are set afterwards.
  Step& region(std::shared_ptr<const Kernel> kernel, const Shape& dims, std::vector<Operand> operands,
               int reduce_rank = 0);
  /// A gather or a scatter.
  Step& indexed(Step::Work work, DType type, const Shape& dims, std::vector<Operand> operands);
  /// A contraction with an epilogue, and segments after the first, whose k is the last extent.
  Step& contract(DType type, const Shape& dims, std::vector<Operand> operands,
                 std::shared_ptr<const Kernel> epilogue = nullptr, std::vector<Segment> further = {});
  Step& attention(AttentionPass pass, const Shape& dims, std::vector<Operand> operands,
                  std::shared_ptr<const Kernel> score, std::shared_ptr<const Kernel> gradient = nullptr);
  /// Makes the last step part of the dispatch of the one before it.
  void join();
  /// Makes the last step, a product, follow the one before it in its dispatch.
  void follow();
  /// Makes the last step, a region, run at the end of the dispatch before it.
  void finish();

  /// Takes the last step out of the plan again and runs it on the data by the reference: what it writes, an
  /// input of the plan for once, then holds the result.
  void run_last_step_ahead();

  /// Runs the plan once. The backend must be that of the plan's device.
  DeviceRun run_on(Backend& backend) const;
  /// Runs what the backend has made of `shared_plan()`.
  DeviceRun run_on(Backend& backend, Executable& executable) const;
  /// Outputs and damage of a run beside what the reference computes.
  Comparison compare(const DeviceRun& run, Tolerance tolerance = {}) const;
  /// One of them: output `number` beside the same buffer of what `expected` gives; without the damage.
  Comparison compare_output(const DeviceRun& run, const PlanMemory& expected, std::size_t number,
                            Tolerance tolerance = {}) const;
  /// The bytes of all buffers after the reference ran.
  PlanMemory expected() const;

  Device device() const { return plan_->device; }
  Plan& plan() { return *plan_; }
  std::shared_ptr<const Plan> shared_plan() const { return plan_; }
  std::mt19937& random() { return random_; }

 private:
  Step& add(Step step);
  int add_buffer(BufferRole role, DType type, std::int64_t elements);
  void fill_random(int buffer, Range range);

  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  PlanMemory memory_;
  std::mt19937 random_;
};

/// A view: buffer, offset, strides.
Operand view(int buffer, std::initializer_list<std::int64_t> strides, std::int64_t offset = 0);

}  // namespace caldera::reference
