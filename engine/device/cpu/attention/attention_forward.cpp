// The output of attention: an online softmax over blocks of keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cpu/attention/attention.h"

namespace caldera::cpu {

void PreparedAttention::forward(const RunContext& context, Work& work, std::int64_t batch,
                                std::int64_t block) const {
  const AttentionOps& ops = attention_ops();
  const Place at = place(context, batch);
  const Causal mask = causal(context);
  const std::int64_t first = block * query_block_;
  const std::int64_t queries = std::min(query_block_, queries_ - first);
  const std::int64_t visible = visible_keys(mask, first + queries);
  const MatrixView q = rows_of(at.q, first, queries, work.packed[0], work.line);
  std::fill_n(work.rows, queries, SoftmaxRow{-std::numeric_limits<float>::infinity(), 0});
  const auto vanishes = [&](const SoftmaxRow& row) { return mask.fill - row.maximum < kExpVanishes; };

  // All weights together are at most 1, as those of the softmax are: what they weigh cannot overflow before
  // it is divided by their sum. A power of two, which costs no rounding.
  const auto share = static_cast<float>(
      std::exp2(-std::ceil(std::log2(static_cast<double>(std::max<std::int64_t>(keys_, 1))))));
  std::int64_t keys = 0;
  for (std::int64_t key = 0; key < keys_; key += keys) {
    if (key >= visible && std::all_of(work.rows, work.rows + queries, vanishes)) break;
    keys = std::min(key_block_, (key < visible ? visible : keys_) - key);
    const MatrixView k = rows_of(at.k, key, keys, work.packed[1], work.line);
    const MatrixView v = rows_of(at.v, key, keys, work.packed[2], work.line);
    multiply(queries, keys, head_, q, k.transposed(), work.scores, keys, false);
    // As many rows at a time as stay in the first cache from the scores to their exponentials.
    const std::int64_t group = std::max<std::int64_t>(score_->tile() / keys, 1);
    for (std::int64_t r = 0; r < queries; r += group) {
      const std::int64_t rows = std::min(group, queries - r);
      float* scores = work.scores + r * keys;
      work.score->run({first + r, rows, key, keys}, {&scores, 1}, scores, keys);
      for (std::int64_t i = 0; i < rows; ++i) {
        const float factor = ops.accumulate(scores + i * keys, keys, share, work.rows[r + i]);
        if (key > 0) ops.scale(work.sum + (r + i) * value_, value_, factor);
      }
    }
    multiply(queries, value_, keys, {work.scores, keys, 1}, v, work.sum, value_, key > 0);
  }

  const auto rows_from_first = [&](const Matrix& x) {
    return reinterpret_cast<float*>(context.buffers[static_cast<std::size_t>(x.buffer)]) + element(x, batch) +
           first * x.row;
  };
  float* highest = rows_from_first(highest_);
  float* total = rows_from_first(total_);
  if (keys_ == 0) std::fill_n(work.sum, queries * value_, 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) {
    SoftmaxRow& row = work.rows[i];
    // Scores that are all minus infinity leave no weights.
    if (row.sum == 0 && keys_ > 0) row.sum = std::numeric_limits<double>::quiet_NaN();
    highest[i * highest_.row] = row.maximum;
    total[i * total_.row] = static_cast<float>(row.sum / static_cast<double>(share));
    float* o = work.sum + i * value_;
    if (keys_ > 0)
      for (std::int64_t e = 0; e < value_; ++e) o[e] /= static_cast<float>(row.sum);
  }
  store(context, out_, batch, first, queries, work.sum, work.line);
}

}  // namespace caldera::cpu
