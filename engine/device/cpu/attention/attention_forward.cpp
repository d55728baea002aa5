// The output of attention: an online softmax over blocks of keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/cpu/attention/attention.h"
#include "engine/device/cpu/attention/attention_pieces.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"

namespace caldera::cpu {
namespace {

/// Queries up to which the rows of keys and values are read as they are stored, one after the other. More
/// gain by products of matrices, which rows are widened for.
constexpr std::int64_t kFewQueries = 8;
/// The sum of a part of the keys that was left out.
constexpr double kLeftOut = -1;

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
  if (work.pairs != nullptr && !block.few)
    return multiply_pairs(work, {&at.q, block.query, block.queries}, {&at.k, block.key, block.keys},
                          work.scores);
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
  if (block.few) {
    const KeyRows rows = key_rows(at.v, block.key);
    return key_row_ops().mix(work.scores, block.keys, block.queries, rows, block.keys, value_, work.sum,
                             block.add);
  }
  if (work.pairs != nullptr)
    return weigh_pairs(work, work.scores, block.queries, {&at.v, block.key, block.keys}, work.sum, block.add);
  const MatrixView v = rows_of(at.v, block.key, block.keys, work.packed[2], work.line);
  multiply(block.queries, value_, block.keys, {work.scores, block.keys, 1}, v, work.sum, value_, block.add);
}

PreparedAttention::Walk PreparedAttention::walk_of(const RunContext& context, Work& work, const Place& at,
                                                   std::int64_t block) const {
  Walk walk;
  walk.mask = causal(context);
  walk.first = block * query_block_;
  walk.queries = std::min(query_block_, queries_ - walk.first);
  walk.visible = visible_keys(walk.mask, walk.first + walk.queries);
  walk.q = rows_of(at.q, walk.first, walk.queries, work.packed[0], work.line);
  walk.few = walk.queries <= kFewQueries && k_.in_rows && v_.in_rows && walk.q.column == 1;
  walk.filled = walk.few ? keys_before_filling(at.k.numbers, at.k.number_stride, keys_) : keys_;
  // All weights together are at most 1, as those of the softmax are: what they weigh cannot overflow before
  // it is divided by their sum. A power of two, which costs no rounding.
  walk.share = static_cast<float>(
      std::exp2(-std::ceil(std::log2(static_cast<double>(std::max<std::int64_t>(keys_, 1))))));
  return walk;
}

bool PreparedAttention::hides(const Walk& walk, const SoftmaxRow* rows) {
  return std::all_of(rows, rows + walk.queries,
                     [&](const SoftmaxRow& row) { return walk.mask.fill - row.maximum < kExpVanishes; });
}

void PreparedAttention::take_in(Work& work, const Place& at, const Walk& walk, std::int64_t begin,
                                std::int64_t end) const {
  const AttentionOps& ops = attention_ops();
  std::fill_n(work.rows, walk.queries, SoftmaxRow{-std::numeric_limits<float>::infinity(), 0});
  std::int64_t keys = 0;
  for (std::int64_t key = begin; key < end; key += keys) {
    if (key >= walk.visible && hides(walk, work.rows)) break;
    std::int64_t until = key < walk.visible ? std::min(walk.visible, end) : end;
    if (key < walk.filled) until = std::min(until, walk.filled);
    keys = std::min(key_block_, until - key);
    const KeyBlock part{walk.first, walk.queries, key, keys, walk.few, key >= walk.filled && walk.few,
                        key > begin};
    raw_scores(work, at, part, walk.q);
    // As many rows at a time as stay in the first cache from the scores to their exponentials.
    const std::int64_t group = std::max<std::int64_t>(score_->tile() / keys, 1);
    bool weighs = false;
    for (std::int64_t r = 0; r < walk.queries; r += group) {
      const std::int64_t rows = std::min(group, walk.queries - r);
      float* scores = work.scores + r * keys;
      work.score->run({walk.first + r, rows, key, keys}, {&scores, 1}, scores, keys);
      for (std::int64_t i = 0; i < rows; ++i) {
        float* row = scores + i * keys;
        if (part.filling && ops.vanish(row, keys, work.rows[r + i].maximum)) {
          std::fill_n(row, keys, 0.0F);
          continue;
        }
        weighs = true;
        const float factor = ops.accumulate(row, keys, walk.share, work.rows[r + i]);
        if (part.add) ops.scale(work.sum + (r + i) * value_, value_, factor);
      }
    }
    if (weighs) add_values(work, at, part);
  }
}

void PreparedAttention::give_out(const RunContext& context, std::int64_t batch, const Walk& walk,
                                 SoftmaxRow* rows, float* sum, std::byte* line) const {
  const auto rows_from_first = [&](const Matrix& x) {
    return reinterpret_cast<float*>(context.buffers[static_cast<std::size_t>(x.buffer)]) + element(x, batch) +
           walk.first * x.row;
  };
  float* highest = rows_from_first(highest_);
  float* total = rows_from_first(total_);
  if (keys_ == 0) std::fill_n(sum, walk.queries * value_, 0.0F);
  for (std::int64_t i = 0; i < walk.queries; ++i) {
    SoftmaxRow& row = rows[i];
    // Scores that are all minus infinity leave no weights.
    if (row.sum == 0 && keys_ > 0) row.sum = std::numeric_limits<double>::quiet_NaN();
    highest[i * highest_.row] = row.maximum;
    total[i * total_.row] = static_cast<float>(row.sum / static_cast<double>(walk.share));
    if (keys_ > 0) attention_ops().divide(sum + i * value_, value_, static_cast<float>(row.sum));
  }
  store(context, out_, batch, walk.first, walk.queries, sum, line);
}

void PreparedAttention::forward(const RunContext& context, Work& work, std::int64_t batch,
                                std::int64_t block) const {
  const Place at = place(context, batch);
  const Walk walk = walk_of(context, work, at, block);
  take_in(work, at, walk, 0, keys_);
  give_out(context, batch, walk, work.rows, work.sum, work.line);
}

void PreparedAttention::forward_part(const RunContext& context, Work& work, std::int64_t batch,
                                     std::int64_t part, const Partial& to) const {
  const Place at = place(context, batch);
  const Walk walk = walk_of(context, work, at, 0);
  const std::int64_t begin = part * kKeysOfPart;
  if (part > 0 && begin >= walk.visible) {  // left out, if its first part says that it has no weight
    std::fill_n(to.rows, walk.queries, SoftmaxRow{-std::numeric_limits<float>::infinity(), kLeftOut});
    return;
  }
  take_in(work, at, walk, begin, std::min(begin + kKeysOfPart, keys_));
  std::copy_n(work.rows, walk.queries, to.rows);
  for (std::int64_t i = 0; i < walk.queries; ++i) to.highest[i] = work.rows[i].maximum;
  std::copy_n(work.sum, walk.queries * value_, to.sum);
}

/// Adds up the parts, and gives out the result in the first one's place.
void PreparedAttention::join_parts(const RunContext& context, Work& work, std::int64_t batch,
                                   const Partial& all) const {
  const Place at = place(context, batch);
  const Walk walk = walk_of(context, work, at, 0);
  const auto row_of = [&](std::int64_t part, std::int64_t i) -> SoftmaxRow& {
    return all.rows[part * queries_ + i];
  };
  bool left_out = false;
  for (std::int64_t part = 1; part < parts_; ++part) {
    left_out = left_out || row_of(part, 0).sum == kLeftOut;
    for (std::int64_t i = 0; i < queries_; ++i)
      row_of(0, i).maximum = std::max(row_of(0, i).maximum, row_of(part, i).maximum);
  }
  if (left_out && !hides(walk, all.rows)) return forward(context, work, batch, 0);
  for (std::int64_t i = 0; i < queries_; ++i) {
    SoftmaxRow row{row_of(0, i).maximum, 0};
    const float shift = row.maximum == -std::numeric_limits<float>::infinity() ? 0.0F : row.maximum;
    float* sum = work.sum + i * value_;
    std::fill_n(sum, value_, 0.0F);
    for (std::int64_t part = 0; part < parts_; ++part) {
      const SoftmaxRow& own = row_of(part, i);
      if (own.sum == kLeftOut) continue;
      const float factor = std::exp(all.highest[part * queries_ + i] - shift);
      row.sum += own.sum * static_cast<double>(factor);
      const float* from = all.sum + (part * queries_ + i) * value_;
      for (std::int64_t e = 0; e < value_; ++e) sum[e] += factor * from[e];
    }
    work.rows[i] = row;
  }
  give_out(context, batch, walk, work.rows, work.sum, work.line);
}

/// Few heads and many keys: parts of the keys side by side.
void PreparedAttention::run_parts(const RunContext& context, double nanoseconds) const {
  thread_local Scratch partials, scratch;
  const std::int64_t tasks = batches_ * parts_;
  AttentionPieces sizes(nullptr);
  const auto place_all = [&](AttentionPieces& pieces) {
    const std::int64_t rows = tasks * queries_;
    return Partial{
        reinterpret_cast<SoftmaxRow*>(pieces.take(static_cast<std::size_t>(rows) * sizeof(SoftmaxRow))),
        pieces.floats(rows), pieces.floats(rows * value_)};
  };
  place_all(sizes);
  AttentionPieces pieces(partials.get(sizes.used()));
  const Partial all = place_all(pieces);
  const auto of_task = [&](std::int64_t task) {
    return Partial{all.rows + task * queries_, all.highest + task * queries_,
                   all.sum + task * queries_ * value_};
  };
  const auto with_work = [&](Scratch& memory, const auto& body) {
    Work work;
    lay_out(work, memory.get(lay_out(work, nullptr)));
    work.score.emplace(*score_, context, work.score_memory);
    body(work);
  };
  parallel_ranges(tasks, threads_for(nanoseconds, tasks), [&](std::int64_t begin, std::int64_t end) {
    thread_local Scratch own;
    with_work(own, [&](Work& work) {
      for (std::int64_t task = begin; task < end; ++task) {
        work.score->seek(task / parts_);
        forward_part(context, work, task / parts_, task % parts_, of_task(task));
      }
    });
  });
  with_work(scratch, [&](Work& work) {
    for (std::int64_t batch = 0; batch < batches_; ++batch) {
      work.score->seek(batch);
      join_parts(context, work, batch, of_task(batch * parts_));
    }
  });
}

}  // namespace caldera::cpu
