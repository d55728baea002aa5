#include "engine/device/cpu/sort/sort_step.h"

#include <cmath>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/sort/row_order.h"
#include "engine/tensor/dispatch.h"

namespace caldera::cpu {

PreparedSort::PreparedSort(const Step& step, const SortStep& sort)
    : sort_(sort),
      rows_(step.dims[0]),
      length_(step.dims[1]),
      count_(step.dims[2]),
      in_(step.operands[0]),
      out_(step.operands[1]) {}

template <class T>
void PreparedSort::run_typed(const RunContext& context) const {
  using Key = SortKey<T>;
  const auto* x =
      reinterpret_cast<const T*>(context.buffers[static_cast<std::size_t>(in_.buffer)]) + in_.offset;
  auto* out =
      reinterpret_cast<std::int32_t*>(context.buffers[static_cast<std::size_t>(out_.buffer)]) + out_.offset;
  const auto n = static_cast<double>(length_);
  const double nanoseconds =
      static_cast<double>(rows_) * n * (count_ * 8 > length_ ? 2 * std::log2(n + 1) : 2);
  const std::int64_t stride = in_.strides[1];
  const Key flip = sort_.descending ? ~Key{0} : Key{0};
  parallel_ranges(rows_, threads_for(nanoseconds, rows_), [&](std::int64_t begin, std::int64_t end) {
    RowOrder<Key> order;
    for (std::int64_t row = begin; row < end; ++row) {
      const T* from = x + row * in_.strides[0];
      std::int32_t* to = out + row * out_.strides[0];
      // One after the other, as most are, vectors load them.
      if (stride == 1)
        order.find(
            length_, sort_.first, count_, [=](std::int64_t i) { return sort_key(from[i]) ^ flip; }, to);
      else
        order.find(
            length_, sort_.first, count_, [=](std::int64_t i) { return sort_key(from[i * stride]) ^ flip; },
            to);
    }
  });
}

void PreparedSort::run(const RunContext& context) const {
  if (rows_ == 0 || count_ == 0) return;
  dispatch(sort_.of, [&]<class T>() { run_typed<Stored<T>>(context); });
}

}  // namespace caldera::cpu
