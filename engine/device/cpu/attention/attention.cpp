#include "engine/device/cpu/attention/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "engine/device/cpu/attention/attention_pieces.h"
#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/quantized/quantized_ops.h"
#include "engine/device/cpu/simd/micro_ops.h"

namespace caldera::cpu {
namespace {

/// Rows of the side that a task owns, and of the side that it walks along, whose products fit the second
/// cache. What a causal mask hides within a block is computed all the same, so blocks of the owned side are
/// small.
constexpr std::int64_t kOwnBlock = 64;
constexpr std::int64_t kOtherBlock = 512;
/// Scores of a block where rows of keys are read one after the other, for so few queries: they fit the first
/// cache.
constexpr std::int64_t kInRows = 8;
constexpr std::int64_t kRowScores = 4096;
/// Heads of all texts that threads share out evenly as they are.
constexpr std::int64_t kManyHeads = 32;
/// A byte of a row that is read once, from the caches or from memory.
constexpr double kNanosecondsOfByte = 0.05;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

PreparedAttention::PreparedAttention(const Plan& plan, const Step& step, const AttentionStep& attention,
                                     AttentionPass pass)
    : pass_(pass),
      by_keys_(pass == AttentionPass::grad_kv || pass == AttentionPass::grad_qkv),
      mask_(attention.causal) {
  const int rank = step.dims.rank();
  const int n = rank - 3;
  const int d = rank - 2;
  const int e = rank - 1;
  const auto shared = [&](std::size_t operand) { return step.operands[operand].strides[rank - 5] == 0; };
  // One query of each head of a group, as in decoding: rows of one matrix.
  grouped_ = rank > 4 && step.dims[rank - 4] == 1 && shared(1) && shared(2) &&
             (attention.stored.rows == 0 || shared(3)) && !by_keys_;
  query_dim_ = grouped_ ? rank - 5 : rank - 4;
  const int m = query_dim_;
  queries_ = step.dims[m];
  keys_ = step.dims[n];
  head_ = step.dims[d];
  value_ = step.dims[e];
  for (int i = 0; i < m; ++i) {
    batch_.push_back(step.dims[i]);
    batches_ *= step.dims[i];
  }
  q_ = matrix(plan, step, 0, m, d);
  k_ = matrix(plan, step, 1, n, d);
  v_ = matrix(plan, step, 2, n, e);
  set_stored(step, attention.stored);
  const std::size_t last = step.operands.size() - 1;
  if (pass_ == AttentionPass::forward) {
    out_ = matrix(plan, step, last - 2, m, e);
    highest_ = matrix(plan, step, last - 1, m, -1);
    total_ = matrix(plan, step, last, m, -1);
  } else {
    go_ = matrix(plan, step, 3, m, e);
    highest_ = matrix(plan, step, 4, m, -1);
    total_ = matrix(plan, step, 5, m, -1);
    delta_ = matrix(plan, step, 6, m, -1);
    // Of grad_qkv the last is dq.
    if (pass_ == AttentionPass::grad_q) {
      out_ = matrix(plan, step, last, m, d);
    } else {
      const std::size_t values = attention.pass == AttentionPass::grad_qkv ? last - 1 : last;
      out_ = matrix(plan, step, values - 1, n, d);
      out2_ = matrix(plan, step, values, n, e);
      if (pass_ == AttentionPass::grad_qkv) out3_ = matrix(plan, step, last, m, d);
    }
  }
  const auto in_pairs = [](const Matrix& x) {
    return x.type == DType::bf16 && !x.blocks && x.table_rows == 0;
  };
  // Weights are rounded to bf16 ahead of their products, which wider results would show.
  const bool rounds = out_.type == DType::bf16 && (!by_keys_ || out2_.type == DType::bf16) &&
                      (pass_ != AttentionPass::grad_qkv || out3_.type == DType::bf16);
  pairs_ = rounds && in_pairs(q_) && in_pairs(k_) && in_pairs(v_) &&
           (pass_ == AttentionPass::forward || in_pairs(go_)) && head_ > 0 && value_ > 0;
  const auto named = static_cast<std::size_t>(step.named_operands());
  const Kernel& score = *attention.score;
  score_.emplace(score_kernel(step, score, 1, named, 0));
  if (attention.gradient != nullptr) {
    const std::size_t after_score =
        named + score.inputs.size() - 1 + static_cast<std::size_t>(score.index_count);
    gradient_.emplace(score_kernel(step, *attention.gradient, 2, after_score, score.scalars.size()));
  }
  if (pass_ == AttentionPass::grad_qkv && !joins()) {
    pass_ = AttentionPass::grad_kv;
    of_queries_ = std::shared_ptr<const PreparedAttention>(
        new PreparedAttention(plan, step, attention, AttentionPass::grad_q));
  }
  choose_blocks();
}

// Of the seven products of two walks one makes five. The threads that may be used are no part of it: results
// would depend on them.
bool PreparedAttention::joins() const {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  return ceil_div(batches_, cores) * cores * 5 <= batches_ * 7;
}

/// Says how rows of k and v are stored.
void PreparedAttention::set_stored(const Step& step, const StoredKeys& stored) {
  for (Matrix* x : {&k_, &v_}) {
    x->blocks = stored.blocks;
    x->table_rows = stored.rows;
    x->table_stride = x == &k_ ? stored.key_stride : stored.value_stride;
    if (stored.blocks || stored.rows > 0) x->regular = false;
    x->in_rows = pass_ == AttentionPass::forward && takes_row_width(x->columns) && x->columns > 0 &&
                 (x->blocks || x->column == 1);
  }
  if (stored.rows == 0) return;
  const Operand& o = step.operands[3];
  rows_ = {o.buffer, o.offset, o.strides[step.dims.rank() - 3], {}};
  for (int i = 0; i < query_dim_; ++i) rows_.batch.push_back(o.strides[i]);
}

PreparedAttention::Matrix PreparedAttention::matrix(const Plan& plan, const Step& step, std::size_t operand,
                                                    int row_dim, int column_dim) const {
  const Operand& o = step.operands[operand];
  Matrix x;
  x.buffer = o.buffer;
  x.type = plan.buffers[static_cast<std::size_t>(o.buffer)].dtype;
  x.offset = o.offset;
  for (int i = 0; i < query_dim_; ++i) x.batch.push_back(o.strides[i]);
  x.rows = step.dims[row_dim];
  x.row = o.strides[row_dim];
  if (column_dim < 0) return x;
  x.columns = step.dims[column_dim];
  x.column = o.strides[column_dim];
  // The stride of a dim of one element is free: one that products like.
  if (x.columns == 1) x.column = 1;
  if (x.rows == 1) x.row = x.column == 1 ? std::max<std::int64_t>(x.columns, 1) : 1;
  x.regular = x.type == DType::f32 && is_regular(x.rows, x.columns, x.row, x.column);
  return x;
}

ScoreKernel PreparedAttention::score_kernel(const Step& step, const Kernel& kernel, std::size_t given,
                                            std::size_t first_operand, std::size_t first_scalar) const {
  const std::size_t count = kernel.inputs.size() - given + static_cast<std::size_t>(kernel.index_count);
  std::vector<ScoreOperand> operands;
  for (std::size_t i = first_operand; i < first_operand + count; ++i) {
    const Operand& o = step.operands[i];
    ScoreOperand operand{o.buffer, o.offset, {}, o.strides[query_dim_], o.strides[step.dims.rank() - 3]};
    for (int b = 0; b < query_dim_; ++b) operand.batch.push_back(o.strides[b]);
    operands.push_back(std::move(operand));
  }
  return {kernel,
          given,
          batch_,
          queries_,
          keys_,
          operands,
          std::span<const std::int32_t>(step.scalars).subspan(first_scalar, kernel.scalars.size())};
}

void PreparedAttention::choose_blocks() {
  std::int64_t& own = by_keys_ ? key_block_ : query_block_;
  std::int64_t& other = by_keys_ ? query_block_ : key_block_;
  const std::int64_t own_rows = by_keys_ ? keys_ : queries_;
  own = std::clamp<std::int64_t>(own_rows, 1, kOwnBlock);
  // Few of the one leave room for more of the other.
  const bool in_rows = k_.in_rows && v_.in_rows && own <= kInRows;
  other = std::clamp<std::int64_t>(by_keys_ ? queries_ : keys_, 1,
                                   (in_rows ? kRowScores : kOwnBlock * kOtherBlock) / own);
  blocks_ = pass_ == AttentionPass::grad_qkv ? 1 : ceil_div(own_rows, own);
  if (in_rows && pass_ == AttentionPass::forward && blocks_ == 1 && batches_ < kManyHeads)
    parts_ = std::max<std::int64_t>(ceil_div(keys_, kKeysOfPart), 1);
  const double points =
      static_cast<double>(batches_) * static_cast<double>(queries_) * static_cast<double>(keys_);
  double products = static_cast<double>(head_ + value_);
  double point = score_->nanoseconds_per_point() + 0.4;
  if (gradient_) {
    products *= pass_ == AttentionPass::grad_qkv ? 2.5 : 2;
    point += gradient_->nanoseconds_per_point();
  }
  nanoseconds_ = points * (0.01 * products + point) * (mask_.fill >= 0 ? 0.6 : 1);
  if (!in_rows) return;
  // Few queries wait for the rows of the cache rather than compute.
  const auto row_bytes = [](const Matrix& x) {
    return static_cast<double>(x.columns) * (x.blocks ? 1 : static_cast<double>(size_of(x.type)));
  };
  const double bytes =
      static_cast<double>(batches_ * blocks_) * static_cast<double>(keys_) * (row_bytes(k_) + row_bytes(v_));
  nanoseconds_ = std::max(nanoseconds_, bytes * kNanosecondsOfByte);
}

std::int64_t PreparedAttention::element(const Matrix& x, std::int64_t batch) const {
  std::int64_t element = x.offset;
  for (std::size_t d = batch_.size(); d-- > 0;) {
    element += batch % batch_[d] * x.batch[d];
    batch /= batch_[d];
  }
  return element;
}

PreparedAttention::Place PreparedAttention::place(const RunContext& context, std::int64_t batch) const {
  const auto data = [&](const Matrix& x) {
    return reinterpret_cast<const float*>(context.buffers[static_cast<std::size_t>(x.buffer)]) +
           element(x, batch);
  };
  const auto view = [&](const Matrix& x) {
    return Located{&x, context.buffers[static_cast<std::size_t>(x.buffer)] +
                           element(x, batch) * static_cast<std::int64_t>(size_of(x.type))};
  };
  Place place;
  place.q = view(q_);
  place.k = view(k_);
  place.v = view(v_);
  if (rows_.buffer >= 0) {
    std::int64_t first = rows_.offset, left = batch;
    for (std::size_t d = batch_.size(); d-- > 0; left /= batch_[d])
      first += left % batch_[d] * rows_.batch[d];
    const auto* numbers =
        reinterpret_cast<const std::int32_t*>(context.buffers[static_cast<std::size_t>(rows_.buffer)]) +
        first;
    for (Located* x : {&place.k, &place.v}) {
      x->numbers = numbers;
      x->number_stride = rows_.along;
    }
  }
  if (pass_ == AttentionPass::forward) return place;
  place.go = view(go_);
  place.highest = data(highest_);
  place.total = data(total_);
  place.delta = data(delta_);
  return place;
}

KeyRows PreparedAttention::key_rows(const Located& whole, std::int64_t first) {
  const Matrix& x = *whole.matrix;
  KeyRows rows;
  rows.data = whole.data;
  const std::int64_t size = static_cast<std::int64_t>(size_of(x.type));
  rows.stride = (whole.numbers != nullptr ? x.table_stride : x.row) * size;
  rows.form = x.blocks                ? RowForm::q8_0
              : x.type == DType::f16  ? RowForm::f16
              : x.type == DType::bf16 ? RowForm::bf16
                                      : RowForm::f32;
  rows.numbers = whole.numbers;
  rows.number_stride = whole.number_stride;
  rows.count = x.table_rows;
  rows.halves = x.blocks ? half_table() : nullptr;
  return rows.from(first);
}

MatrixView PreparedAttention::rows_of_table(const Located& whole, std::int64_t first, std::int64_t count,
                                            float* to) {
  const Matrix& x = *whole.matrix;
  const KeyRows rows = key_rows(whole, first);
  if (x.in_rows) {
    key_row_ops().widen(rows, count, x.columns, to);
    return {to, x.columns, 1};
  }
  // Rows of a width, or with strides, that vectors do not take; blocks have neither.
  const auto size = static_cast<std::int64_t>(size_of(x.type));
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t number = rows.numbers[n * rows.number_stride];
    float* row = to + n * x.columns;
    if (number < 0 || number >= rows.count) {
      std::fill_n(row, x.columns, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const std::byte* stored = rows.data + number * rows.stride;
    const MicroFn widen = x.type == DType::f32 ? nullptr : find_cast(x.type, DType::f32);
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const std::byte* from = stored + c * x.column * size;
      if (widen == nullptr)
        row[c] = *reinterpret_cast<const float*>(from);
      else
        widen(row + c, from, from, from, 1);
    }
  }
  return {to, x.columns, 1};
}

MatrixView PreparedAttention::rows_of(const Located& whole, std::int64_t first, std::int64_t count, float* to,
                                      std::byte* line) {
  const Matrix& x = *whole.matrix;
  if (x.blocks || whole.numbers != nullptr) return rows_of_table(whole, first, count, to);
  const std::byte* data = whole.data + first * x.row * static_cast<std::int64_t>(size_of(x.type));
  if (x.type == DType::f32) {
    const MatrixView rows{reinterpret_cast<const float*>(data), x.row, x.column};
    return x.regular ? rows : copied(rows, count, x.columns, to);
  }
  const MicroFn widen = find_cast(x.type, DType::f32);
  const auto* from = reinterpret_cast<const std::uint16_t*>(data);
  auto* gathered = reinterpret_cast<std::uint16_t*>(line);
  for (std::int64_t r = 0; r < count; ++r, from += x.row) {
    if (x.column != 1)
      for (std::int64_t c = 0; c < x.columns; ++c) gathered[c] = from[c * x.column];
    const void* row = x.column == 1 ? from : gathered;
    widen(to + r * x.columns, row, row, row, x.columns);
  }
  return {to, x.columns, 1};
}

void PreparedAttention::store(const RunContext& context, const Matrix& x, std::int64_t batch,
                              std::int64_t first, std::int64_t count, const float* from,
                              std::byte* line) const {
  const auto copy = [&](auto* to, const auto* values) {
    if (x.column == 1)
      std::copy_n(values, x.columns, to);
    else
      for (std::int64_t c = 0; c < x.columns; ++c) to[c * x.column] = values[c];
  };
  std::byte* memory = context.buffers[static_cast<std::size_t>(x.buffer)];
  std::int64_t at = element(x, batch) + first * x.row;
  const MicroFn narrow = x.type == DType::f32 ? nullptr : find_cast(DType::f32, x.type);
  for (std::int64_t r = 0; r < count; ++r, at += x.row, from += x.columns) {
    if (narrow == nullptr) {
      copy(reinterpret_cast<float*>(memory) + at, from);
      continue;
    }
    narrow(line, from, from, from, x.columns);
    copy(reinterpret_cast<std::uint16_t*>(memory) + at, reinterpret_cast<const std::uint16_t*>(line));
  }
}

std::size_t PreparedAttention::lay_out(Work& work, std::byte* memory) const {
  const bool forward = pass_ == AttentionPass::forward;
  AttentionPieces pieces(memory);
  const std::int64_t points = query_block_ * key_block_;
  work.scores = pieces.floats(points);
  work.products = pieces.floats(forward ? 0 : points);
  work.raw = pieces.floats(gradient_ && gradient_->uses(1) ? points : 0);
  work.sum = pieces.floats(by_keys_  ? key_block_ * head_
                           : forward ? query_block_ * value_
                                     : query_block_ * head_);
  work.sum2 = pieces.floats(by_keys_ ? key_block_ * value_ : 0);
  work.sum3 = pieces.floats(pass_ == AttentionPass::grad_qkv ? queries_ * head_ : 0);
  work.packed[0] = pieces.floats(q_.regular ? 0 : query_block_ * head_);
  work.packed[1] = pieces.floats(k_.regular ? 0 : key_block_ * head_);
  work.packed[2] = pieces.floats(v_.regular ? 0 : key_block_ * value_);
  work.packed[3] = pieces.floats(go_.regular ? 0 : query_block_ * value_);
  work.pairs = pairs_ ? find_bf16_tiles() : nullptr;
  work.narrowed = reinterpret_cast<std::uint16_t*>(
      pieces.take(work.pairs != nullptr ? static_cast<std::size_t>(points) * sizeof(std::uint16_t) : 0));
  work.line = pieces.take(static_cast<std::size_t>(std::max(head_, value_)) * sizeof(std::uint16_t));
  work.rows =
      reinterpret_cast<SoftmaxRow*>(pieces.take(static_cast<std::size_t>(query_block_) * sizeof(SoftmaxRow)));
  work.score_memory = pieces.take(score_->scratch_bytes());
  work.gradient_memory = pieces.take(gradient_ ? gradient_->scratch_bytes() : 0);
  return pieces.used();
}

PreparedAttention::Causal PreparedAttention::causal(const RunContext& context) const {
  Causal causal;
  if (mask_.fill < 0 || mask_.one_query || mask_.in_parts) return causal;
  const auto bits = [&](std::int32_t scalar) {
    return static_cast<std::uint32_t>(context.scalars[static_cast<std::size_t>(scalar)]);
  };
  causal.known = true;
  causal.fill = std::bit_cast<float>(bits(mask_.fill));
  causal.offset = mask_.offset;
  if (mask_.offset_scalar >= 0) causal.offset += static_cast<std::int32_t>(bits(mask_.offset_scalar));
  return causal;
}

std::int64_t PreparedAttention::visible_keys(const Causal& causal, std::int64_t query_end) const {
  if (!causal.known) return keys_;
  return std::clamp<std::int64_t>((grouped_ ? 1 : query_end) + causal.offset, 0, keys_);
}

bool PreparedAttention::hides_masked_keys(const Causal& causal, const Place& place,
                                          std::int64_t query) const {
  // Without a total, as where a score is NaN, all of the row's weights are NaN.
  return causal.fill - place.highest[query * highest_.row] < kExpVanishes &&
         !std::isnan(place.total[query * total_.row]);
}

void PreparedAttention::run_tasks(const RunContext& context, std::int64_t begin, std::int64_t end) const {
  thread_local Scratch scratch;
  Work work;
  lay_out(work, scratch.get(lay_out(work, nullptr)));
  work.score.emplace(*score_, context, work.score_memory);
  if (gradient_) work.gradient.emplace(*gradient_, context, work.gradient_memory);
  for (std::int64_t task = begin; task < end; ++task) {
    const std::int64_t batch = task / blocks_;
    std::int64_t block = task % blocks_;
    // Under a causal mask the work of a block grows along the queries (falls along the keys). From both ends
    // inwards, equal ranges of tasks are about equal work.
    if (mask_.fill >= 0) block = block % 2 == 0 ? block / 2 : blocks_ - 1 - block / 2;
    work.score->seek(batch);
    if (gradient_) work.gradient->seek(batch);
    if (pass_ == AttentionPass::forward)
      forward(context, work, batch, block);
    else if (pass_ == AttentionPass::grad_q)
      gradient_q(context, work, batch, block);
    else if (pass_ == AttentionPass::grad_kv)
      gradient_kv(context, work, batch, block);
    else
      gradient_qkv(context, work, batch);
  }
}

void PreparedAttention::run(const RunContext& context) const {
  run_walk(context);
  if (of_queries_ != nullptr) of_queries_->run_walk(context);
}

void PreparedAttention::run_walk(const RunContext& context) const {
  const std::int64_t tasks = batches_ * blocks_;
  if (tasks == 0) return;
  // Of the keys that one query does not see, nothing is computed.
  const double seen = queries_ > 1 && !grouped_ ? 1
                                                : static_cast<double>(visible_keys(causal(context), 1)) /
                                                      static_cast<double>(std::max<std::int64_t>(keys_, 1));
  const double nanoseconds = nanoseconds_ * (pass_ == AttentionPass::forward ? seen : 1);
  if (parts_ > 1) return run_parts(context, nanoseconds);
  const int threads = threads_for(nanoseconds, tasks);
  std::optional<BlasThreads> inside;  // a team of threads calls OpenBLAS from each, on that thread alone
  if (threads == 1 && !in_parallel()) inside.emplace(1);
  parallel_ranges(tasks, threads,
                  [&](std::int64_t begin, std::int64_t end) { run_tasks(context, begin, end); });
}

}  // namespace caldera::cpu
