#include "engine/device/cpu_interleaved.h"

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/quantized/integer_ops.h"

namespace caldera {
namespace {

/// Of a byte that is moved, on one thread.
constexpr double kMoveNanoseconds = 0.5;

/// Calls body(row, from, to) for the first of every sixteen rows, and where they are.
template <class Body>
void for_each_group(QuantizedFormat format, const std::byte* from, std::int64_t rows, std::int64_t columns,
                    std::byte* to, const Body& body) {
  const std::int64_t row_bytes = columns / facts(format).block * facts(format).block_bytes;
  const std::int64_t groups = rows / kInterleavedRows;
  const int threads = cpu::threads_for(static_cast<double>(rows * row_bytes) * kMoveNanoseconds, groups);
  cpu::parallel_ranges(groups, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t g = begin; g < end; ++g) {
      const std::int64_t at = g * kInterleavedRows * row_bytes;
      body(from + at, to + at, row_bytes);
    }
  });
}

}  // namespace

bool cpu_prefers_interleaved(const QuantizedLayout& layout, std::int64_t rows) {
  return may_interleave(layout, rows) && cpu::integer_ops().dot_interleaved != nullptr;
}

void cpu_interleave(QuantizedFormat format, const std::byte* from, std::int64_t rows, std::int64_t columns,
                    std::byte* to) {
  for_each_group(format, from, rows, columns, to,
                 [&](const std::byte* group, std::byte* out, std::int64_t /*row_bytes*/) {
                   interleave_rows(format, group, columns, out);
                 });
}

void cpu_separate(QuantizedFormat format, const std::byte* from, std::int64_t rows, std::int64_t columns,
                  std::byte* to) {
  for_each_group(format, from, rows, columns, to,
                 [&](const std::byte* group, std::byte* out, std::int64_t row_bytes) {
                   for (std::int64_t r = 0; r < kInterleavedRows; ++r)
                     separate_row(format, group, columns, r, out + r * row_bytes);
                 });
}

}  // namespace caldera
