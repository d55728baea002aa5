// Attention steps with their operands, for checks of devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/check/reference/plan_case.h"

namespace caldera::reference {

/// Says what happens to a raw score q k before the softmax.
enum class ScoreKind : std::uint8_t {
  scaled,        // raw * scale
  boolean_mask,  // select(mask[b,n], raw * scale, fill): keys that are padding
  full_mask,     // the same with a mask for every query and key
  bias,          // raw * scale + bias[h,m,n]
  causal,        // select(n <= m + offset, raw * scale, fill)
  causal_bias,   // the same on raw * scale + bias[h,m,n]
  capped,        // cap * tanh(raw * scale): the gradient needs the raw score
};

struct AttentionSetting {
  std::int64_t batch = 1;
  std::int64_t heads = 1;  // of k and v
  std::int64_t group = 1;  // queries' heads for each of those
  std::int64_t m = 1, n = 1, d = 1, e = 1;
  ScoreKind score = ScoreKind::scaled;
  double fill = -1e30;
  std::int64_t offset = 0;         // causal: in the operand
  std::int64_t offset_scalar = 0;  // causal: added by a scalar argument, unless 0
  bool heads_inside = false;       // tensors are as (batch, time, head, size), not (batch, head, time, size)
  Range values{-1, 1};             // of q and k
  bool hint = true;                // causal: Step::causal says so
  DType memory = DType::f32;       // of q, k, v and go
  bool joined = false;             // one step makes all gradients

  std::string text() const;
};

/// Adds steps to a plan, which must outlive it. dims: batch, heads, group, M, N, D, E.
class AttentionCase {
 public:
  AttentionCase(PlanCase& plan, const AttentionSetting& setting);

  /// Adds the forward step; o, highest and total are outputs of the plan.
  void add_forward();
  /// Adds a forward step with o alone as an output of the plan: nobody reads highest and total.
  void add_forward_alone();
  /// Adds both gradient steps, or the one that makes all. go and delta are random, highest and total are what
  /// the reference says.
  void add_gradients();
  /// Adds all steps: the gradients read highest and total where the forward step put them. Outputs of
  /// the plan are o, dq, dk and dv.
  void add_all();

  /// The inputs that hold v and go.
  int values() const { return v_; }
  int go() const { return go_; }

 private:
  struct Kernels {
    std::shared_ptr<const Kernel> score, gradient;
  };
  Kernels make_kernels() const;
  Operand query(int buffer, std::int64_t size, bool along_d) const;  // (b, h, g, m, size)
  Operand key(int buffer, std::int64_t size, bool along_d) const;    // (b, h, n, size)
  Operand row(int buffer) const;                                     // (b, h, g, m)
  std::vector<Operand> score_operands() const;
  std::int64_t query_count(std::int64_t size) const;
  std::int64_t key_count(std::int64_t size) const;
  Step& add_step(AttentionPass pass, std::vector<Operand> operands);
  void add_forward_step(int o, int highest, int total);
  void add_gradient_steps(int highest, int total, int dq, int dk, int dv);
  /// Elements of dk or dv: the whole batch, not summed over the group.
  std::int64_t key_gradient_count(std::int64_t size) const;
  Operand key_gradient(int buffer, std::int64_t size, bool along_d) const;

  AttentionSetting s_;
  PlanCase& case_;
  Kernels kernels_;
  int q_ = -1, k_ = -1, v_ = -1, mask_ = -1, bias_ = -1;
  int go_ = -1, delta_ = -1, highest_ = -1, total_ = -1, o_ = -1;
  int scale_ = -1, fill_ = -1, zero_ = -1, shift_ = -1;  // scalars of the plan
};

}  // namespace caldera::reference
