// The gradients of attention: scores are computed again from q and k, their weights from the
// highest score and the total of each row.
#include <algorithm>

#include "engine/device/cpu/attention/attention.h"

namespace caldera::cpu {

/// Rows as products in f32 take them; none where products take them as they are.
MatrixView PreparedAttention::rows_for(Work& work, const Located& whole, std::int64_t first,
                                       std::int64_t count, int packed) {
  return work.pairs != nullptr ? MatrixView{} : rows_of(whole, first, count, work.packed[packed], work.line);
}

/// Leaves P in `scores` and dR in `products`.
void PreparedAttention::gradient_block(Work& work, const Place& place, const Block& block,
                                       const MatrixView& q, const MatrixView& k, const MatrixView& v,
                                       const MatrixView& go) const {
  const AttentionOps& ops = attention_ops();
  const std::int64_t keys = block.keys;
  float* raw = gradient_->uses(1) ? work.raw : work.scores;
  if (work.pairs != nullptr) {
    multiply_pairs(work, {&place.q, block.query, block.queries}, {&place.k, block.key, keys}, raw);
    multiply_pairs(work, {&place.go, block.query, block.queries}, {&place.v, block.key, keys}, work.products);
  } else {
    multiply(block.queries, keys, head_, q, k.transposed(), raw, keys, false);
    multiply(block.queries, keys, value_, go, v.transposed(), work.products, keys, false);
  }
  // As many rows at a time as stay in the first cache from the scores to the gradients.
  const std::int64_t group = std::max<std::int64_t>(score_->tile() / keys, 1);
  for (std::int64_t r = 0; r < block.queries; r += group) {
    const std::int64_t rows = std::min(group, block.queries - r);
    float* scores = work.scores + r * keys;
    float* products = work.products + r * keys;
    float* raw_rows = raw + r * keys;
    work.score->run({block.query + r, rows, block.key, keys}, {&raw_rows, 1}, scores, keys);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t query = block.query + r + i;
      ops.gradient(scores + i * keys, products + i * keys, keys, place.highest[query * highest_.row],
                   place.total[query * total_.row], place.delta[query * delta_.row]);
    }
    float* const given[] = {products, raw_rows};
    work.gradient->run({block.query + r, rows, block.key, keys}, given, products, keys);
  }
}

void PreparedAttention::gradient_q(const RunContext& context, Work& work, std::int64_t batch,
                                   std::int64_t block) const {
  const Place at = place(context, batch);
  const Causal mask = causal(context);
  const std::int64_t first = block * query_block_;
  const std::int64_t queries = std::min(query_block_, queries_ - first);
  const MatrixView q = rows_for(work, at.q, first, queries, 0);
  const MatrixView go = rows_for(work, at.go, first, queries, 3);
  std::int64_t visible = visible_keys(mask, first + queries);
  for (std::int64_t i = first; i < first + queries && visible < keys_; ++i)
    if (!hides_masked_keys(mask, at, i)) visible = keys_;

  if (visible == 0) std::fill_n(work.sum, queries * head_, 0.0F);
  std::int64_t keys = 0;
  for (std::int64_t key = 0; key < visible; key += keys) {
    keys = std::min(key_block_, visible - key);
    const MatrixView k = rows_for(work, at.k, key, keys, 1);
    const MatrixView v = rows_for(work, at.v, key, keys, 2);
    gradient_block(work, at, {first, queries, key, keys}, q, k, v, go);
    if (work.pairs != nullptr)
      weigh_pairs(work, work.products, queries, {&at.k, key, keys}, work.sum, key > 0);
    else
      multiply(queries, head_, keys, {work.products, keys, 1}, k, work.sum, head_, key > 0);
  }
  store(context, out_, batch, first, queries, work.sum, work.line);
}

void PreparedAttention::gradient_kv(const RunContext& context, Work& work, std::int64_t batch,
                                    std::int64_t block) const {
  const Place at = place(context, batch);
  const Causal mask = causal(context);
  const std::int64_t key = block * key_block_;
  const std::int64_t keys = std::min(key_block_, keys_ - key);
  const MatrixView k = rows_for(work, at.k, key, keys, 1);
  const MatrixView v = rows_for(work, at.v, key, keys, 2);
  // The first query that may look at the block's first key, unless those before it matter all the same.
  std::int64_t begin = mask.known ? std::clamp<std::int64_t>(key - mask.offset, 0, queries_) : 0;
  for (std::int64_t i = 0; i < begin; ++i)
    if (!hides_masked_keys(mask, at, i)) begin = 0;

  if (begin == queries_) {
    std::fill_n(work.sum, keys * head_, 0.0F);
    std::fill_n(work.sum2, keys * value_, 0.0F);
  }
  std::int64_t queries = 0;
  for (std::int64_t query = begin; query < queries_; query += queries) {
    queries = std::min(query_block_, queries_ - query);
    const MatrixView q = rows_for(work, at.q, query, queries, 0);
    const MatrixView go = rows_for(work, at.go, query, queries, 3);
    gradient_block(work, at, {query, queries, key, keys}, q, k, v, go);
    if (pass_ == AttentionPass::grad_qkv) {
      float* sum = work.sum3 + query * head_;
      if (work.pairs != nullptr)
        weigh_pairs(work, work.products, queries, {&at.k, key, keys}, sum, true);
      else
        multiply(queries, head_, keys, {work.products, keys, 1}, k, sum, head_, true);
    }
    if (work.pairs != nullptr) {
      weigh_pairs_across(work, work.products, keys, {&at.q, query, queries}, work.sum, query > begin);
      weigh_pairs_across(work, work.scores, keys, {&at.go, query, queries}, work.sum2, query > begin);
      continue;
    }
    const MatrixView p{work.scores, keys, 1};
    const MatrixView dr{work.products, keys, 1};
    multiply(keys, head_, queries, dr.transposed(), q, work.sum, head_, query > begin);
    multiply(keys, value_, queries, p.transposed(), go, work.sum2, value_, query > begin);
  }
  store(context, out_, batch, key, keys, work.sum, work.line);
  store(context, out2_, batch, key, keys, work.sum2, work.line);
}

void PreparedAttention::gradient_qkv(const RunContext& context, Work& work, std::int64_t batch) const {
  std::fill_n(work.sum3, queries_ * head_, 0.0F);
  for (std::int64_t key = 0; key < keys_; key += key_block_)
    gradient_kv(context, work, batch, key / key_block_);
  store(context, out3_, batch, 0, queries_, work.sum3, work.line);
}

}  // namespace caldera::cpu
