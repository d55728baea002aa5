#include "engine/device/cpu/quantized/quantized_step.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/products/matrix.h"
#include "engine/device/cpu/products/row_dots.h"
#include "engine/device/cpu/quantized/integer_ops.h"
#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/tensor/interleaved_rows.h"

namespace caldera::cpu {
namespace {

/// Rows of x up to which weights are multiplied as they are decoded, and up to which panels are multiplied by
/// our own kernel.
constexpr std::int64_t kFewRows = 2;
constexpr std::int64_t kNarrow = 3;
/// Elements of a panel of decoded weights: 512 KiB, of which the L2 cache of a core holds two; more where
/// there are rows enough for OpenBLAS to make blocks of its own.
constexpr std::int64_t kDecodedPanel = std::int64_t{1} << 17;
constexpr std::int64_t kLargeDecodedPanel = std::int64_t{1} << 20;
constexpr std::int64_t kManyDecodedRows = 64;
/// Of a weight, on one thread: decoding it, and multiplying it with one more row of x.
constexpr double kDecodeNanoseconds = 0.12, kMultiplyNanoseconds = 0.03;
/// The same for products of integers, and rows of x up to which they are made of codes as they are decoded.
constexpr double kCodesNanoseconds = 0.04, kIntegersNanoseconds = 0.01;
constexpr std::int64_t kFewRoundedRows = 4;
/// The same of interleaved rows, which are decoded for four rows of x at a time while they are in the L1
/// cache.
constexpr std::int64_t kFewInterleavedRows = 16;
/// Columns that a thread takes of a transposed product at least.
constexpr std::int64_t kFewestDecodedColumns = 256;

std::int64_t panel_for(std::int64_t rows) {
  return rows < kManyDecodedRows ? kDecodedPanel : kLargeDecodedPanel;
}

enum DecodeScratch { kX, kRounded, kPanelUse, kScales, kBiases, kSeparated, kDecodeScratches };

std::byte* bytes_scratch(DecodeScratch use, std::size_t bytes) {
  thread_local Scratch scratch[kDecodeScratches];
  return scratch[use].get(bytes);
}
float* decode_scratch(DecodeScratch use, std::int64_t elements) {
  return reinterpret_cast<float*>(bytes_scratch(use, static_cast<std::size_t>(elements) * sizeof(float)));
}

/// What rounded rows stand for.
const float* floats_of(const RoundedRows& x, std::int64_t rows) {
  float* out = decode_scratch(kX, rows * x.columns);
  for (std::int64_t b = 0; b < rows * x.blocks(); ++b)
    for (std::int64_t i = b * kRoundedBlock; i < (b + 1) * kRoundedBlock; ++i)
      out[i] = x.scales[b] * static_cast<float>(x.codes[i]);
  return out;
}

int as_int(std::int64_t v) { return static_cast<int>(v); }

/// Rows in row-major order, as far apart as they are in memory, or densely where their elements are no
/// neighbours, or their distance is none that OpenBLAS takes: rows that are one (broadcast), that overlap, or
/// that are in reverse.
const float* packed(const float* x, std::int64_t rows, std::int64_t columns, std::int64_t& row,
                    std::int64_t column) {
  const bool neighbours = column == 1 || columns <= 1;
  const bool apart = row >= columns && row <= std::numeric_limits<int>::max();
  if (neighbours && rows <= 1) {  // their distance counts for nothing
    row = columns;
    return x;
  }
  if (neighbours && apart) return x;
  float* out = decode_scratch(kX, rows * columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) out[i * columns + j] = x[i * row + j * column];
  row = columns;
  return out;
}

}  // namespace

PreparedQuantized::PreparedQuantized(const Plan& plan, const Step& step, const QuantizedStep& quantized)
    : what_(quantized.what), m_(step.dims[0]), forms_(parts_of(what_.layout, what_.rows, what_.columns)) {
  const auto place = [&](std::size_t k) {
    const Operand& operand = step.operands[k];
    return Place{operand.buffer, operand.offset, operand.strides,
                 plan.buffers[static_cast<std::size_t>(operand.buffer)].dtype};
  };
  if (quantized.has_x()) x_ = place(0);
  if (quantized.has_which()) which_ = place(quantized.first_part() - 1);
  for (std::size_t k = quantized.first_part(); k + 1 < step.operands.size(); ++k) parts_.push_back(place(k));
  out_ = place(step.operands.size() - 1);
  out_row_ = out_.strides[0];
}

const std::byte* PreparedQuantized::bytes(const RunContext& context, const Place& place) const {
  return context.buffers[static_cast<std::size_t>(place.buffer)] +
         place.offset * static_cast<std::int64_t>(size_of(place.type));
}

/// A row of a part of floats, as f32. Rows of kPanelRows slots are there at a time.
const float* PreparedQuantized::numbers(const RunContext& context, std::size_t part, std::int64_t row,
                                        std::int64_t slot) const {
  const Place& place = parts_[part];
  const std::int64_t columns = forms_[part].columns;
  const std::byte* from =
      bytes(context, place) + row * columns * static_cast<std::int64_t>(size_of(place.type));
  if (place.type == DType::f32) return reinterpret_cast<const float*>(from);
  float* out = decode_scratch(part == 1 ? kScales : kBiases, kPanelRows * columns) + slot * columns;
  find_cast(place.type, DType::f32)(out, from, from, from, columns);
  return out;
}

/// Those from row `first` on, counted over all matrices.
const std::byte* PreparedQuantized::interleaved_rows(const RunContext& context, std::int64_t first) const {
  return bytes(context, parts_[0]) + first * forms_[0].columns;
}

/// Row `row`, counted over all matrices.
QuantizedRow PreparedQuantized::row_of(const RunContext& context, std::int64_t row, std::int64_t slot) const {
  QuantizedRow result;
  const std::int64_t row_bytes = forms_[0].columns * static_cast<std::int64_t>(size_of(parts_[0].type));
  if (what_.layout.interleaved) {
    const auto size = static_cast<std::size_t>(kPanelRows * row_bytes);
    std::byte* separated = bytes_scratch(kSeparated, size) + slot * row_bytes;
    const std::int64_t within = row % kInterleavedRows;
    separate_row(what_.layout.format, interleaved_rows(context, row - within), what_.columns, within,
                 separated);
    result.codes = reinterpret_cast<const std::uint8_t*>(separated);
    return result;
  }
  result.codes = reinterpret_cast<const std::uint8_t*>(bytes(context, parts_[0])) + row * row_bytes;
  if (parts_.size() == 1) return result;
  const std::int64_t matrix = what_.rows > 0 ? row / what_.rows : 0;
  const std::int64_t within = row - matrix * what_.rows;
  result.scales = numbers(context, 1, matrix * forms_[1].rows + within / what_.layout.group_rows, slot);
  if (is_affine(what_.layout.format)) result.biases = numbers(context, 2, row, slot);
  if (what_.layout.format == QuantizedFormat::codebook4) result.table = numbers(context, 2, matrix, slot);
  return result;
}

/// Rows that follow one another and have one matrix. A matrix that does not exist is -1.
std::vector<PreparedQuantized::Run> PreparedQuantized::runs(const RunContext& context) const {
  if (which_.buffer < 0) return {{0, 0, m_}};
  const auto* which = reinterpret_cast<const std::int32_t*>(bytes(context, which_));
  std::vector<Run> runs;
  for (std::int64_t m = 0; m < m_; ++m) {
    std::int64_t matrix = which[m * which_.strides[0]];
    if (matrix < 0 || matrix >= what_.matrices) matrix = -1;
    if (!runs.empty() && runs.back().matrix == matrix)
      ++runs.back().count;
    else
      runs.push_back({matrix, m, 1});
  }
  return runs;
}

/// Rows as floats: all of them, or those that `which` names.
void PreparedQuantized::take(const RunContext& context) const {
  auto* out = reinterpret_cast<float*>(const_cast<std::byte*>(bytes(context, out_)));
  const auto* which =
      which_.buffer < 0 ? nullptr : reinterpret_cast<const std::int32_t*>(bytes(context, which_));
  const std::int64_t all = what_.matrices * what_.rows;
  const std::int64_t count = which == nullptr ? all : m_;
  const std::int64_t columns = what_.columns;
  const std::int64_t step = which == nullptr ? columns : out_row_;
  const int threads = threads_for(static_cast<double>(count * columns) * 2 * kDecodeNanoseconds, count);
  parallel_ranges(count, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = which == nullptr ? i : which[i * which_.strides[0]];
      if (row < 0 || row >= all)
        std::fill_n(out + i * step, columns, std::numeric_limits<float>::quiet_NaN());
      else
        quantized_ops().decode(what_.layout, row_of(context, row), 0, columns, out + i * step);
    }
  });
}

/// Few rows of x: dot products with the weights while they are in registers.
void PreparedQuantized::multiply_few(const RunContext& context, const Run& run, const float* x,
                                     std::int64_t x_row, float* out) const {
  const double each = static_cast<double>(what_.columns) *
                      (kDecodeNanoseconds + kMultiplyNanoseconds * static_cast<double>(run.count));
  const int threads = threads_for(each * static_cast<double>(what_.rows), what_.rows);
  parallel_ranges(what_.rows, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n)
      quantized_ops().dot(what_.layout, row_of(context, run.matrix * what_.rows + n), what_.columns, x, x_row,
                          run.count, out + n, out_row_);
  });
}

/// A few rows of x times weights of 16 bits, which are widened in registers.
void PreparedQuantized::multiply_halves(const RunContext& context, const Run& run, const float* x,
                                        std::int64_t x_row, float* out) const {
  const DType type = parts_[0].type;
  const std::int64_t row_bytes = what_.columns * static_cast<std::int64_t>(size_of(type));
  const RowDots work{.m = run.count,
                     .n = what_.rows,
                     .k = what_.columns,
                     .a = x,
                     .a_m = x_row,
                     .b = bytes(context, parts_[0]) + run.matrix * what_.rows * row_bytes,
                     .b_n = what_.columns,
                     .c = out,
                     .c_m = out_row_};
  run_row_dots(type, work);
}

/// Many rows of x: panels of whole rows of the matrix, some to each thread.
void PreparedQuantized::multiply_panels(const RunContext& context, const Run& run, const float* x,
                                        std::int64_t x_row, float* out) const {
  const std::int64_t k = what_.columns;
  const std::int64_t height = std::clamp<std::int64_t>(panel_for(run.count) / k, 1, what_.rows);
  const double each =
      static_cast<double>(k) * (kDecodeNanoseconds + kMultiplyNanoseconds * static_cast<double>(run.count));
  const int threads = in_parallel() ? 1 : threads_for(each * static_cast<double>(what_.rows), what_.rows);
  const bool blas = openblas().available() && run.count > kNarrow;
  std::optional<BlasThreads> inside;
  if (blas && threads == 1 && !in_parallel()) inside.emplace(1);
  parallel_ranges(what_.rows, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; n += height) {
      const std::int64_t count = std::min(height, end - n);
      float* panel = decode_scratch(kPanelUse, count * k);
      for (std::int64_t i = 0; i < count; ++i)
        quantized_ops().decode(what_.layout, row_of(context, run.matrix * what_.rows + n + i), 0, k,
                               panel + i * k);
      if (blas)
        openblas().sgemm(OpenBlas::kRowMajor, OpenBlas::kNoTrans, OpenBlas::kTrans, as_int(run.count),
                         as_int(count), as_int(k), 1.0F, x, as_int(x_row), panel, as_int(k), 0.0F, out + n,
                         as_int(out_row_));
      else
        row_product_f32()(run.count, count, k, x, x_row, panel, k, out + n, out_row_);
    }
  });
}

/// x rounded to 8 bits: sums of integers a block, each scaled once.
void PreparedQuantized::multiply_integers(const RunContext& context, const Run& run, const float* x,
                                          std::int64_t x_row, float* out) const {
  const bool interleaved = what_.layout.interleaved && integer_ops().dot_interleaved != nullptr;
  const bool few = run.count <= (interleaved ? kFewInterleavedRows : kFewRoundedRows);
  if (!few && integer_ops().pack != nullptr) return multiply_tiles(context, run, x, x_row, out);
  const std::int64_t k = what_.columns;
  const RoundedRows rounded =
      RoundedRows::in(bytes_scratch(kRounded, RoundedRows::bytes(run.count, k)), run.count, k);
  integer_ops().round(x, x_row, run.count, rounded);
  if (!few) return multiply_panels(context, run, floats_of(rounded, run.count), k, out);
  const double each =
      static_cast<double>(k) * (kCodesNanoseconds + kIntegersNanoseconds * static_cast<double>(run.count));
  const int threads = in_parallel() ? 1 : threads_for(each * static_cast<double>(what_.rows), what_.rows);
  const std::int64_t first = run.matrix * what_.rows;
  if (interleaved) {
    const std::int64_t groups = what_.rows / kInterleavedRows;
    return parallel_ranges(groups, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin * kInterleavedRows; n < end * kInterleavedRows; n += kInterleavedRows)
        integer_ops().dot_interleaved(what_.layout.format, interleaved_rows(context, first + n), rounded,
                                      run.count, out + n, out_row_);
    });
  }
  parallel_ranges(what_.rows, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; n += kPanelRows) {
      const std::int64_t count = std::min(kPanelRows, end - n);
      QuantizedRow rows[kPanelRows];
      for (std::int64_t i = 0; i < count; ++i) rows[i] = row_of(context, first + n + i, i);
      integer_ops().dot(what_.layout, rows, count, rounded, run.count, out + n, out_row_);
    }
  });
}

/// Of the rows from `first` on, where there are `count`; the last one stands for those that are not.
void PreparedQuantized::pack_panel(const RunContext& context, std::int64_t first, std::int64_t count,
                                   std::byte* panel) const {
  if (what_.layout.interleaved)
    return integer_ops().pack_interleaved(what_.layout.format, interleaved_rows(context, first),
                                          what_.columns, panel);
  QuantizedRow rows[kPanelRows];
  for (std::int64_t i = 0; i < kPanelRows; ++i) rows[i] = row_of(context, first + std::min(i, count - 1), i);
  integer_ops().pack(what_.layout, rows, what_.columns, panel);
}

/// Many rows of x: panels of rows of the matrix, interleaved, times tiles of x.
void PreparedQuantized::multiply_tiles(const RunContext& context, const Run& run, const float* x,
                                       std::int64_t x_row, float* out) const {
  const std::int64_t k = what_.columns, m = run.count;
  const IntegerOps& ops = integer_ops();
  const RoundedTiles tiles{
      k, reinterpret_cast<RoundedBlock*>(bytes_scratch(kRounded, RoundedTiles::bytes(m, k)))};
  const auto threads = [](double nanoseconds, std::int64_t tasks) {
    return in_parallel() ? 1 : threads_for(nanoseconds, tasks);
  };
  const std::int64_t count = RoundedTiles::tiles(m);
  parallel_ranges(count, threads(static_cast<double>(m * k) * kDecodeNanoseconds, count),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t t = begin; t < end; ++t)
                      ops.round_tile(what_.layout.format, x, x_row, m, t, tiles);
                  });
  const std::int64_t panels = (what_.rows + kPanelRows - 1) / kPanelRows;
  const double each = static_cast<double>(kPanelRows * k) *
                      (kDecodeNanoseconds + kIntegersNanoseconds * static_cast<double>(m));
  parallel_ranges(panels, threads(each * static_cast<double>(panels), panels),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::byte* panel = bytes_scratch(kPanelUse, panel_bytes(k));
                    for (std::int64_t n = begin * kPanelRows; n < std::min(end * kPanelRows, what_.rows);
                         n += kPanelRows) {
                      const std::int64_t there = std::min(kPanelRows, what_.rows - n);
                      pack_panel(context, run.matrix * what_.rows + n, there, panel);
                      ops.multiply(what_.layout, panel, tiles, m, out + n, out_row_, there);
                    }
                  });
}

/// Sums over the rows of the matrix: each thread has columns of its own, and adds up panels of rows.
void PreparedQuantized::multiply_across(const RunContext& context, const Run& run, const float* x,
                                        std::int64_t x_row, float* out) const {
  static const MatrixFn kProduct = find_matrix_product(DType::f32);
  // No thread may start or end inside of a group.
  const std::int64_t least = column_unit(what_.layout);
  const std::int64_t unit = (kFewestDecodedColumns + least - 1) / least * least;
  const std::int64_t units = (what_.columns + unit - 1) / unit;
  const double each = static_cast<double>(what_.rows * unit) *
                      (kDecodeNanoseconds + kMultiplyNanoseconds * static_cast<double>(run.count));
  const int threads = in_parallel() ? 1 : threads_for(each * static_cast<double>(units), units);
  const bool blas = openblas().available() && run.count > 1;
  std::optional<BlasThreads> inside;
  if (blas && threads == 1 && !in_parallel()) inside.emplace(1);
  parallel_ranges(units, threads, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * unit;
    const std::int64_t width = std::min(end * unit, what_.columns) - first;
    if (width <= 0) return;
    for (std::int64_t m = 0; m < run.count; ++m) std::fill_n(out + m * out_row_ + first, width, 0.0F);
    const std::int64_t height = std::clamp<std::int64_t>(panel_for(run.count) / width, 1, what_.rows);
    for (std::int64_t n = 0; n < what_.rows; n += height) {
      const std::int64_t count = std::min(height, what_.rows - n);
      float* panel = decode_scratch(kPanelUse, count * width);
      for (std::int64_t i = 0; i < count; ++i)
        quantized_ops().decode(what_.layout, row_of(context, run.matrix * what_.rows + n + i), first, width,
                               panel + i * width);
      if (blas)
        openblas().sgemm(OpenBlas::kRowMajor, OpenBlas::kNoTrans, OpenBlas::kNoTrans, as_int(run.count),
                         as_int(width), as_int(count), 1.0F, x + n, as_int(x_row), panel, as_int(width), 1.0F,
                         out + first, as_int(out_row_));
      else
        kProduct(run.count, width, count, x + n, x_row, 1, panel, width, out + first, out_row_, nullptr,
                 true);
    }
  });
}

void PreparedQuantized::multiply(const RunContext& context, const Run& run) const {
  const bool across = what_.work == QuantizedWork::transposed_product;
  const std::int64_t inner = across ? what_.rows : what_.columns;
  const std::int64_t width = across ? what_.columns : what_.rows;
  auto* out = reinterpret_cast<float*>(const_cast<std::byte*>(bytes(context, out_))) + run.first * out_row_;
  if (run.matrix < 0 || inner == 0) {
    const float value = run.matrix < 0 ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
    for (std::int64_t m = 0; m < run.count; ++m) std::fill_n(out + m * out_row_, width, value);
    return;
  }
  std::int64_t x_row = x_.strides[0];
  const auto* from = reinterpret_cast<const float*>(bytes(context, x_)) + run.first * x_row;
  const float* x = packed(from, run.count, inner, x_row, x_.strides[across ? 1 : 2]);
  if (across)
    multiply_across(context, run, x, x_row, out);
  else if (what_.rounds())
    multiply_integers(context, run, x, x_row, out);
  else if (is_half(parts_[0].type) && run.count <= kMostDotRows)
    multiply_halves(context, run, x, x_row, out);
  else if (run.count <= kFewRows)
    multiply_few(context, run, x, x_row, out);
  else
    multiply_panels(context, run, x, x_row, out);
}

void PreparedQuantized::run(const RunContext& context) const {
  const bool is_empty = what_.work == QuantizedWork::product ? what_.rows == 0 : what_.columns == 0;
  if (m_ == 0 || is_empty) return;
  if (!what_.is_product()) return take(context);
  for (const Run& run : runs(context)) multiply(context, run);
}

}  // namespace caldera::cpu
