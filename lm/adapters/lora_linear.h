// LoRALinear: a linear map with a low-rank adapter beside it, in any of the kinds that PEFT has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/adapters/lora_options.h"
#include "lm/nn/layers/dropout.h"
#include "lm/nn/layers/linear.h"

namespace caldera {

/// Throws ValueError when the rank is above min(in, out) of the module with this name.
void check_lora_rank(const std::string& name, const Projection& base, int rank);

/// Holds what an adapter was asked for, as its files say it.
struct LoRARequest {
  LoRAOptions options;
  std::vector<std::string> targets;
};

/// y = base(x) + s * ((dropout(x) A^T) B^T), with s = LoRAOptions::scaling(). A is (rank, in), B is (out,
/// rank), as PEFT stores them. Parameters: those of the base under their own names, then "lora_A.weight" and
/// "lora_B.weight".
///
/// DoRA (Liu et al. 2024): with W the base's weight, each row of W + s B A is brought to the length that
/// "lora_magnitude_vector" (out) says. The length that it has itself is a constant to the gradient, as in
/// PEFT (section 4.3 of the paper).
///
/// PiSSA (Meng et al. 2024): A and B begin as the part of W with the largest singular values, which is taken
/// away from the base: y = base(x) + s * (x (B A)^T - x (B0 A0)^T), B0 and A0 being what they began as.
class LoRALinear final : public Projection {
 public:
  /// Begins as its base. `name` is for messages. Throws ValueError for bad options, and when the rank is
  /// above min(in, out).
  LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, std::uint64_t seed,
             const std::string& name = "LoRALinear");
  /// With given factors. Throws ShapeError unless A is (rank, in) and B is (out, rank).
  LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, LazyTensor a, LazyTensor b);

  /// x (..., in) to (..., out), for any number of leading axes, none included.
  LazyTensor forward(const LazyTensor& x) override;
  std::int64_t in_features() const override { return base_->in_features(); }
  std::int64_t out_features() const override { return base_->out_features(); }
  /// With the adapter's part. Nothing in training with dropout, which is no matrix.
  std::optional<LazyTensor> matrix() override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  Projection& base() { return *base_; }
  /// Gives the base away; the module is of no use then.
  std::unique_ptr<Projection> take_base() { return std::move(base_); }
  /// Returns those of this module: without patterns.
  const LoRAOptions& options() const { return options_; }
  LazyTensor& lora_a() { return a_.tensor; }
  LazyTensor& lora_b() { return b_.tensor; }
  /// Undefined without DoRA.
  LazyTensor& magnitude() { return magnitude_.tensor; }

  /// The adapter as factors on the base as it is published: A, B and the options that they have, which for
  /// PiSSA are those of twice the rank.
  struct Published {
    LoRAOptions options;
    LazyTensor a, b;
  };
  Published published() const;
  /// The matrix (out, in) that is added to the base's weight; with DoRA it takes that weight in.
  LazyTensor weight_change();

  void set_request(std::shared_ptr<const LoRARequest> request) { request_ = std::move(request); }
  /// Null where it was not applied by apply_lora().
  const std::shared_ptr<const LoRARequest>& request() const { return request_; }

  /// Says whether forward adds the adapter's part; AdapterSwitchedOff turns it off for a scope.
  void set_enabled(bool enabled) { enabled_ = enabled; }
  bool is_enabled() const { return enabled_; }

 private:
  void begin_as_largest_part();
  void begin_magnitude();
  /// s times x's way through the factors.
  LazyTensor delta(const LazyTensor& x) const;
  /// The lengths of the rows of W + s B A, (out).
  LazyTensor row_lengths() const;
  LazyTensor dora(const LazyTensor& x);

  std::unique_ptr<Projection> base_;
  LoRAOptions options_;
  Weight a_;
  Weight b_;
  Weight magnitude_;
  LazyTensor first_a_, first_b_;  // PiSSA: what they began as
  LazyTensor base_squares_;       // DoRA: of the rows of W, summed
  LazyTensor base_at_zero_;       // DoRA: the base's bias
  Dropout dropout_;
  std::shared_ptr<const LoRARequest> request_;
  bool enabled_ = true;
};

}  // namespace caldera
