#include <cmath>
#include <limits>

#include "engine/check/reference/kernel_values.h"
#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

/// The matrices of attention, one number at a time. Points are (batch..., m, n, d, e); a coordinate that an
/// operand lacks may be anything, its stride is 0.
class Attention {
 public:
  Attention(const StepMemory& memory, const AttentionStep& step)
      : memory_(memory),
        step_(step),
        score_{*step.score, static_cast<std::size_t>(step.named_operands()), 0, 1},
        batch_(memory.leading_dims(4)) {
    const Point sizes = memory.trailing_dims(4);
    m_ = sizes[0];
    n_ = sizes[1];
    d_ = sizes[2];
    e_ = sizes[3];
  }

  void run() {
    for_each_point(batch_, [&](const Point& batch) {
      at_ = batch;
      at_.resize(batch.size() + 4, 0);
      compute_scores();
      if (step_.pass == AttentionPass::forward) return forward();
      compute_gradients_of_raw();
      if (step_.pass == AttentionPass::grad_q) return gradient_of_q();
      gradient_of_kv();
      if (step_.pass == AttentionPass::grad_qkv) {
        outputs_ += 2;
        gradient_of_q();
      }
    });
  }

 private:
  const Point& at(std::int64_t m, std::int64_t n, std::int64_t d, std::int64_t e) {
    const std::size_t first = batch_.size();
    at_[first] = m;
    at_[first + 1] = n;
    at_[first + 2] = d;
    at_[first + 3] = e;
    return at_;
  }
  double f32_at(std::size_t operand, const Point& at) const {
    return memory_.read(operand, memory_.type(operand), at).f;
  }
  /// Of k (operand 1, inner `d`) or v (operand 2, inner `e`), as they are stored.
  double key_at(std::size_t operand, std::int64_t n, std::int64_t inner) {
    const StoredKeys& stored = step_.stored;
    const bool is_key = operand == 1;
    std::int64_t along = 0;
    if (stored.rows > 0) {
      const std::int64_t row = memory_.read(3, DType::i32, at(0, n, 0, 0)).i;
      if (row < 0 || row >= stored.rows) return std::numeric_limits<double>::quiet_NaN();
      along = row * (is_key ? stored.key_stride : stored.value_stride);
    }
    const std::int64_t place = stored.blocks ? 0 : inner;
    const std::int64_t first =
        memory_.element(operand, at(0, n, is_key ? place : 0, is_key ? 0 : place)) + along;
    const std::vector<std::byte>& bytes = memory_.bytes(operand);
    if (!stored.blocks) return read_number(bytes, memory_.type(operand), first).f;
    const auto block = static_cast<std::size_t>(first + inner / 32 * 34);
    const std::vector<std::byte> scale(bytes.begin() + static_cast<std::ptrdiff_t>(block),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(block + 2));
    const auto code = static_cast<std::int8_t>(bytes.at(block + 2 + static_cast<std::size_t>(inner % 32)));
    return read_number(scale, DType::f16, 0).f * static_cast<double>(code);
  }
  void store(std::size_t operand, const Point& at, double value) {
    memory_.write(operand, memory_.type(operand), at, floating(value));
  }
  std::size_t flat(std::int64_t m, std::int64_t n) const { return static_cast<std::size_t>(m * n_ + n); }

  /// raw_ and score values of the whole matrix.
  void compute_scores() {
    raw_.assign(static_cast<std::size_t>(m_ * n_), 0);
    scores_ = raw_;
    for (std::int64_t m = 0; m < m_; ++m) {
      for (std::int64_t n = 0; n < n_; ++n) {
        double sum = 0;
        for (std::int64_t d = 0; d < d_; ++d) {
          const double q = f32_at(0, at(m, n, d, 0));
          sum += q * key_at(1, n, d);
        }
        raw_[flat(m, n)] = sum;
        const auto values = evaluate(memory_, score_, at(m, n, 0, 0), {floating(sum)});
        scores_[flat(m, n)] = output_value(score_.kernel, 0, values).f;
      }
    }
  }

  void forward() {
    const std::size_t o = score_.outputs();
    for (std::int64_t m = 0; m < m_; ++m) {
      double largest = -HUGE_VAL;
      for (std::int64_t n = 0; n < n_; ++n) largest = std::fmax(largest, scores_[flat(m, n)]);
      // As it is stored, so that the total belongs to what the gradients read.
      largest = rounded(DType::f32, floating(largest)).f;
      double sum = 0;
      for (std::int64_t n = 0; n < n_; ++n) sum += std::exp(scores_[flat(m, n)] - largest);
      for (std::int64_t e = 0; e < e_; ++e) {
        double mixed = 0;
        for (std::int64_t n = 0; n < n_; ++n)
          mixed += std::exp(scores_[flat(m, n)] - largest) / sum * key_at(2, n, e);
        store(o, at(m, 0, 0, e), mixed);
      }
      memory_.write(o + 1, DType::f32, at(m, 0, 0, 0), floating(largest));
      memory_.write(o + 2, DType::f32, at(m, 0, 0, 0), floating(sum));
    }
  }

  /// P, and dR through the kernel of the gradient.
  void compute_gradients_of_raw() {
    const KernelUse gradient{*step_.gradient, score_.outputs(), step_.score->scalars.size(), 2};
    weights_.assign(raw_.size(), 0);
    d_raw_ = weights_;
    for (std::int64_t m = 0; m < m_; ++m) {
      for (std::int64_t n = 0; n < n_; ++n) {
        double d_weight = 0;
        for (std::int64_t e = 0; e < e_; ++e)
          d_weight += f32_at(3, at(m, n, 0, e)) * f32_at(2, at(m, n, 0, e));
        const Point& place = at(m, n, 0, 0);
        const double weight = std::exp(scores_[flat(m, n)] - f32_at(4, place)) / f32_at(5, place);
        const double d_score = weight * (d_weight - f32_at(6, place));
        const auto values =
            evaluate(memory_, gradient, at(m, n, 0, 0), {floating(d_score), floating(raw_[flat(m, n)])});
        weights_[flat(m, n)] = weight;
        d_raw_[flat(m, n)] = output_value(gradient.kernel, 0, values).f;
      }
    }
    outputs_ = gradient.outputs();
  }

  void gradient_of_q() {
    for (std::int64_t m = 0; m < m_; ++m) {
      for (std::int64_t d = 0; d < d_; ++d) {
        double sum = 0;
        for (std::int64_t n = 0; n < n_; ++n) sum += d_raw_[flat(m, n)] * f32_at(1, at(m, n, d, 0));
        store(outputs_, at(m, 0, d, 0), sum);
      }
    }
  }

  void gradient_of_kv() {
    for (std::int64_t n = 0; n < n_; ++n) {
      for (std::int64_t d = 0; d < d_; ++d) {
        double sum = 0;
        for (std::int64_t m = 0; m < m_; ++m) sum += d_raw_[flat(m, n)] * f32_at(0, at(m, n, d, 0));
        store(outputs_, at(0, n, d, 0), sum);
      }
      for (std::int64_t e = 0; e < e_; ++e) {
        double sum = 0;
        for (std::int64_t m = 0; m < m_; ++m) sum += weights_[flat(m, n)] * f32_at(3, at(m, n, 0, e));
        store(outputs_ + 1, at(0, n, 0, e), sum);
      }
    }
  }

  const StepMemory& memory_;
  const AttentionStep& step_;
  KernelUse score_;
  Point batch_;
  Point at_;
  std::int64_t m_ = 0, n_ = 0, d_ = 0, e_ = 0;
  std::vector<double> raw_, scores_, weights_, d_raw_;
  std::size_t outputs_ = 0;
};

}  // namespace

void run_step(const StepMemory& memory, const AttentionStep& attention) {
  Attention(memory, attention).run();
}

}  // namespace caldera::reference
