// The output of attention: an online softmax over blocks of keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cpu/attention/attention.h"

namespace caldera::cpu {
namespace {

/// Queries up to which the rows of keys and values are read as they are stored, one after the other. More
/// gain by products of matrices, which rows are widened for.
constexpr std::int64_t kFewQueries = 8;

/// The keys before those at the end that are all one row of a table: what fills a list of rows up.
std::int64_t keys_before_filling(const std::int32_t* numbers, std::int64_t along, std::int64_t keys) {
  if (numbers == nullptr || keys == 0) return keys;
  const std::int32_t filling = numbers[(keys - 1) * along];
  std::int64_t end = keys - 1;
  while (end > 0 && numbers[(end - 1) * along] == filling) --end;
  return end;
}

}  // namespace

void PreparedAttention::raw_scores(Work& work, const Place& at, const KeyBlock& block,
                                   const MatrixView& q) const {
  if (!block.few) {
    const MatrixView k = rows_of(at.k, block.key, block.keys, work.packed[1], work.line);
    return multiply(block.queries, block.keys, head_, q, k.transposed(), work.scores, block.keys, false);
  }
  const KeyRows rows = key_rows(at.k, block.key);
  const std::int64_t different = block.filling ? 1 : block.keys;
  key_row_ops().dots(q.data, q.row, block.queries, rows, different, head_, work.scores, block.keys);
  for (std::int64_t m = 0; block.filling && m < block.queries; ++m)
    std::fill_n(work.scores + m * block.keys, block.keys, work.scores[m * block.keys]);
}

void PreparedAttention::add_values(Work& work, const Place& at, const KeyBlock& block) const {
  const bool add = block.key > 0;
  if (block.few) {
    const KeyRows rows = key_rows(at.v, block.key);
    return key_row_ops().mix(work.scores, block.keys, block.queries, rows, block.keys, value_, work.sum, add);
  }
  const MatrixView v = rows_of(at.v, block.key, block.keys, work.packed[2], work.line);
  multiply(block.queries, value_, block.keys, {work.scores, block.keys, 1}, v, work.sum, value_, add);
}

void PreparedAttention::forward(const RunContext& context, Work& work, std::int64_t batch,
                                std::int64_t block) const {
  const AttentionOps& ops = attention_ops();
  const Place at = place(context, batch);
  const Causal mask = causal(context);
  const std::int64_t first = block * query_block_;
  const std::int64_t queries = std::min(query_block_, queries_ - first);
  const std::int64_t visible = visible_keys(mask, first + queries);
  const MatrixView q = rows_of(at.q, first, queries, work.packed[0], work.line);
  const bool few = queries <= kFewQueries && k_.in_rows && v_.in_rows && q.column == 1;
  const std::int64_t filled = few ? keys_before_filling(at.k.numbers, at.k.number_stride, keys_) : keys_;
  std::fill_n(work.rows, queries, SoftmaxRow{-std::numeric_limits<float>::infinity(), 0});
  const auto vanishes = [&](const SoftmaxRow& row) { return mask.fill - row.maximum < kExpVanishes; };

  // All weights together are at most 1, as those of the softmax are: what they weigh cannot overflow before
  // it is divided by their sum. A power of two, which costs no rounding.
  const auto share = static_cast<float>(
      std::exp2(-std::ceil(std::log2(static_cast<double>(std::max<std::int64_t>(keys_, 1))))));
  std::int64_t keys = 0;
  for (std::int64_t key = 0; key < keys_; key += keys) {
    if (key >= visible && std::all_of(work.rows, work.rows + queries, vanishes)) break;
    std::int64_t end = key < visible ? visible : keys_;
    if (key < filled) end = std::min(end, filled);
    keys = std::min(key_block_, end - key);
    const KeyBlock part{queries, key, keys, few, key >= filled && few};
    raw_scores(work, at, part, q);
    // As many rows at a time as stay in the first cache from the scores to their exponentials.
    const std::int64_t group = std::max<std::int64_t>(score_->tile() / keys, 1);
    bool weighs = false;
    for (std::int64_t r = 0; r < queries; r += group) {
      const std::int64_t rows = std::min(group, queries - r);
      float* scores = work.scores + r * keys;
      work.score->run({first + r, rows, key, keys}, {&scores, 1}, scores, keys);
      for (std::int64_t i = 0; i < rows; ++i) {
        float* row = scores + i * keys;
        if (part.filling && ops.vanish(row, keys, work.rows[r + i].maximum)) {
          std::fill_n(row, keys, 0.0F);
          continue;
        }
        weighs = true;
        const float factor = ops.accumulate(row, keys, share, work.rows[r + i]);
        if (key > 0) ops.scale(work.sum + (r + i) * value_, value_, factor);
      }
    }
    if (weighs) add_values(work, at, part);
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
