#include "engine/device/cpu/sort/sort_step.h"

#include <algorithm>
#include <cmath>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/sort/row_order.h"

namespace caldera::cpu {
namespace {

Scratch& sort_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

PreparedSort::PreparedSort(const Step& step, const SortStep& sort)
    : sort_(sort),
      rows_(step.dims[0]),
      length_(step.dims[1]),
      count_(step.dims[2]),
      in_(step.operands[0]),
      out_(step.operands[1]) {
  if (suits_network(sort.of, length_, sort.first + count_)) network_ = merge_exchange(length_);
}

SortedRows PreparedSort::bound(const RunContext& context) const {
  SortedRows rows;
  rows.row = {context.buffers[static_cast<std::size_t>(in_.buffer)] +
                  in_.offset * static_cast<std::int64_t>(size_of(sort_.of)),
              in_.strides[1], sort_.of, sort_.descending};
  rows.row_stride = in_.strides[0];
  rows.length = length_;
  rows.first = sort_.first;
  rows.count = count_;
  rows.out =
      reinterpret_cast<std::int32_t*>(context.buffers[static_cast<std::size_t>(out_.buffer)]) + out_.offset;
  rows.out_stride = out_.strides[0];
  return rows;
}

template <class Key>
void PreparedSort::run_rows(const SortedRows& rows) const {
  const auto n = static_cast<double>(length_);
  const double nanoseconds = static_cast<double>(rows_) * n *
                             (are_few_of(length_, rows.first + count_) ? 0.5 : 2 * std::log2(n + 1));
  parallel_ranges(rows_, threads_for(nanoseconds, rows_), [&](std::int64_t begin, std::int64_t end) {
    RowOrder<Key> order;
    for (std::int64_t i = begin; i < end; ++i) {
      KeyRow row = rows.row;
      row.from += i * rows.row_stride * static_cast<std::int64_t>(size_of(row.of));
      order.find(row, length_, rows.first, count_, rows.out + i * rows.out_stride);
    }
  });
}

void PreparedSort::run(const RunContext& context) const {
  if (rows_ == 0 || count_ == 0) return;
  const SortedRows rows = bound(context);
  if (!network_.empty()) {
    const double nanoseconds = static_cast<double>(rows_) *
                               (static_cast<double>(length_) + static_cast<double>(network_.size()) * 0.1);
    const std::int64_t blocks = (rows_ + kRowsTogether - 1) / kRowsTogether;
    return parallel_ranges(blocks, threads_for(nanoseconds, blocks),
                           [&](std::int64_t begin, std::int64_t end) {
                             order_short_rows(rows, network_, begin * kRowsTogether,
                                              std::min(rows_, end * kRowsTogether), sort_scratch());
                           });
  }
  if (size_of(sort_.of) > 4) return run_rows<std::uint64_t>(rows);
  run_rows<std::uint32_t>(rows);
}

}  // namespace caldera::cpu
