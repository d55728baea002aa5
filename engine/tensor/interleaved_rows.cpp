#include "engine/tensor/interleaved_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace caldera {
namespace {

// Scales come first, then codes in the order in which loops read them: processors see one stream, and fetch
// it ahead.
constexpr InterleavedRun kHalfAndNibbles[] = {{0, 2, 2}, {2, 16, 4}};
constexpr InterleavedRun kTwoHalvesAndNibbles[] = {{0, 2, 2}, {2, 2, 2}, {4, 16, 4}};
constexpr InterleavedRun kHalfAndBytes[] = {{0, 2, 2}, {2, 32, 4}};
constexpr InterleavedRun kExponentAndNibbles[] = {{0, 1, 1}, {1, 16, 4}};
constexpr InterleavedRun kQ4K[] = {{0, 2, 2}, {2, 2, 2}, {4, 12, 1}, {16, 128, 4}};

/// Of blocks 0 and 1 each unit of nibbles is followed by that of fifth bits, which all blocks read.
constexpr std::array<InterleavedRun, 20> kQ5K = [] {
  std::array<InterleavedRun, 20> runs = {{{0, 2, 2}, {2, 2, 2}, {4, 12, 1}}};
  std::size_t next = 3;
  for (std::int16_t u = 0; u < 32; u = static_cast<std::int16_t>(u + 4)) {
    runs[next++] = {static_cast<std::int16_t>(48 + u), 4, 4};
    runs[next++] = {static_cast<std::int16_t>(16 + u), 4, 4};
  }
  runs[next] = {80, 96, 4};
  return runs;
}();

/// Unit by unit: four bits of columns 0 to 15 and 64 to 79 of a half, of 32 to 47 and 96 to 111, and two bits
/// of all of these; then the same of the columns that are 16 on, and of the other half.
constexpr std::array<InterleavedRun, 50> kQ6K = [] {
  std::array<InterleavedRun, 50> runs = {{{192, 16, 1}}};
  std::size_t next = 1;
  for (const int half : {0, 1})
    for (int u = 0; u < 32; u += 4)
      for (const int first : {64 * half, 64 * half + 32, 128 + 32 * half})
        runs[next++] = {static_cast<std::int16_t>(first + u), 4, 4};
  runs[next] = {208, 2, 2, true};
  return runs;
}();

/// Calls body(at, from): unit by unit, where it is of row 0 among interleaved rows, and in a row of blocks.
/// Further rows are `unit` bytes apart there.
template <class Body>
void for_each_unit(QuantizedFormat format, std::int64_t columns, const Body& body) {
  const QuantizedFacts& f = facts(format);
  const std::int64_t blocks = columns / f.block, of_chunk = kInterleavedColumns / f.block;
  std::int64_t at = 0;
  const auto take = [&](const InterleavedRun& run, std::int64_t first, std::int64_t end) {
    for (std::int64_t b = first; b < end; ++b)
      for (std::int64_t u = 0; u < run.bytes; u += run.unit, at += kInterleavedRows * run.unit)
        body(at, b * f.block_bytes + run.first + u, run.unit);
  };
  for (std::int64_t first = 0; first < blocks; first += of_chunk)
    for (const InterleavedRun& run : interleaved_runs(format))
      if (!run.is_behind_chunks) take(run, first, std::min(first + of_chunk, blocks));
  for (const InterleavedRun& run : interleaved_runs(format))
    if (run.is_behind_chunks) take(run, 0, blocks);
}

/// memcpy of 1, 2 or 4 bytes, which compilers make one move each of.
void copy_unit(std::byte* to, const std::byte* from, std::int16_t unit) {
  switch (unit) {
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 2:
      std::memcpy(to, from, 2);
      break;
    default:
      *to = *from;
  }
}

}  // namespace

std::span<const InterleavedRun> interleaved_runs(QuantizedFormat format) {
  switch (format) {
    case QuantizedFormat::q4_0:
    case QuantizedFormat::iq4_nl:
      return kHalfAndNibbles;
    case QuantizedFormat::q4_1:
      return kTwoHalvesAndNibbles;
    case QuantizedFormat::q8_0:
      return kHalfAndBytes;
    case QuantizedFormat::mxfp4:
      return kExponentAndNibbles;
    case QuantizedFormat::q4_k:
      return kQ4K;
    case QuantizedFormat::q5_k:
      return kQ5K;
    case QuantizedFormat::q6_k:
      return kQ6K;
    default:
      return {};
  }
}

std::string_view why_not_interleaved(const QuantizedLayout& layout, std::int64_t rows) {
  if (!layout.interleaved) return "";
  if (interleaved_runs(layout.format).empty()) return "no rows of this format are interleaved";
  return rows % kInterleavedRows == 0 ? "" : "rows are interleaved by sixteen";
}

bool may_interleave(const QuantizedLayout& layout, std::int64_t rows) {
  return !layout.interleaved && rows % kInterleavedRows == 0 && !interleaved_runs(layout.format).empty();
}

void interleave_rows(QuantizedFormat format, const std::byte* rows, std::int64_t columns, std::byte* out) {
  const std::int64_t row_bytes = columns / facts(format).block * facts(format).block_bytes;
  for_each_unit(format, columns, [&](std::int64_t at, std::int64_t from, std::int16_t unit) {
    for (std::int64_t r = 0; r < kInterleavedRows; ++r)
      copy_unit(out + at + r * unit, rows + r * row_bytes + from, unit);
  });
}

void separate_row(QuantizedFormat format, const std::byte* rows, std::int64_t columns, std::int64_t row,
                  std::byte* out) {
  for_each_unit(format, columns, [&](std::int64_t at, std::int64_t from, std::int16_t unit) {
    copy_unit(out + from, rows + at + row * unit, unit);
  });
}

}  // namespace caldera
