// The product of a contraction, block by block, and its epilogue.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/products/half_product.h"
#include "engine/device/cpu/products/packed_product.h"
#include "engine/device/cpu/products/product_step.h"
#include "engine/device/cpu/products/row_dots.h"
#include "engine/device/cpu/products/shared_gemm.h"
#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/tensor/dispatch.h"

namespace caldera::cpu {
namespace {

enum ScratchUse { kPackA, kPackB, kPackC, kProduct, kEpilogue, kScratchUses };

Scratch& scratch(ScratchUse use) {
  thread_local Scratch scratch[kScratchUses];
  return scratch[use];
}

template <class T>
T* scratch_of(ScratchUse use, std::int64_t elements) {
  return reinterpret_cast<T*>(scratch(use).get(static_cast<std::size_t>(elements) * sizeof(T)));
}

template <class T>
const T* pack(ScratchUse use, const T* from, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
              std::int64_t column_stride) {
  T* to = scratch_of<T>(use, rows * columns);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = from[r * row_stride + c * column_stride];
  return to;
}

}  // namespace

std::int64_t PreparedProduct::batch_offset(const Matrix& x, std::int64_t index) const {
  std::int64_t offset = x.offset;
  for (std::size_t d = batch_.size(); d-- > 0;) {
    offset += index % batch_[d] * x.batch[d];
    index /= batch_[d];
  }
  return offset;
}

template <class T>
void PreparedProduct::multiply_blas(const Segment& segment, T alpha, const T* a, const T* b,
                                    std::int64_t rows, T* out, std::int64_t out_row, bool add) const {
  const Matrix& x = segment.a;
  const Matrix& y = segment.b;
  const BlasMatrix<T> left{a, x.leading, x.transposed}, right{b, y.leading, y.transposed};
  if (segment.method == Method::gemm)
    shared_gemm<T>(rows, n_, segment.k, alpha, left, right, add, out, out_row);
  else if (n_ == 1)
    shared_gemv<T>(rows, segment.k, alpha, left, b, y.packed || !(y.row > 0) ? 1 : y.row, add, out, out_row);
  else  // the row of C is B's transpose times the row of A
    shared_gemv<T>(n_, segment.k, alpha, {b, y.leading, !y.transposed}, a,
                   x.packed || !(x.column > 0) ? 1 : x.column, add, out, 1);
}

template <class T>
void PreparedProduct::multiply(const Segment& segment, T alpha, const T* a, const T* b, std::int64_t rows,
                               T* out, std::int64_t out_row, bool add) const {
  // OpenBLAS does not multiply by 0 but leaves the product out, NaN and infinities included.
  const bool blas = segment.method != Method::product && alpha != T(0);
  const bool copies = blas ? segment.b.packed : n_ > 1 && segment.b.column != 1;
  if (copies) b = pack(kPackB, b, segment.k, n_, segment.b.row, segment.b.column);
  if (!blas) {
    product_(rows, n_, segment.k, a, segment.a.row, segment.a.column, b, copies ? n_ : segment.b.row, out,
             out_row, &alpha, add);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (segment.a.packed) a = pack(kPackA, a, rows, segment.k, segment.a.row, segment.a.column);
    multiply_blas(segment, alpha, a, b, rows, out, out_row, add);
  }
}

/// An operand of a matrix of the product, from a row on.
FloatMatrix PreparedProduct::float_matrix(const RunContext& context, const Matrix& x, std::int64_t matrix,
                                          std::int64_t row) const {
  const std::int64_t element = batch_offset(x, matrix) + row * x.row;
  return {context.buffers[static_cast<std::size_t>(x.buffer)] +
              element * static_cast<std::int64_t>(size_of(x.type)),
          x.type, x.row, x.column};
}

void PreparedProduct::multiply_halves(const RunContext& context, const Segment& segment, std::int64_t matrix,
                                      std::int64_t row, std::int64_t rows, float alpha, float* out,
                                      std::int64_t out_row, bool add) const {
  const FloatMatrix a = float_matrix(context, segment.a, matrix, row);
  const FloatMatrix b = float_matrix(context, segment.b, matrix, 0);
  cpu::multiply_halves(rows, n_, segment.k, a, b, alpha, out, out_row, add);
}

/// A whole matrix of the product: blocks of it go through the epilogue as soon as they are done.
void PreparedProduct::multiply_packed(const RunContext& context, std::int64_t matrix) const {
  std::vector<ProductTerm> terms;
  for (const Segment& s : segments_) {
    float alpha = 1;
    if (s.scale >= 0) std::memcpy(&alpha, &context.scalars[static_cast<std::size_t>(s.scale)], sizeof(float));
    terms.push_back(
        {s.k, float_matrix(context, s.a, matrix, 0), float_matrix(context, s.b, matrix, 0), alpha});
  }
  if (epilogue_) {
    cpu::multiply_packed(*tiles_, m_, n_, terms,
                         [&](const ProductBlock& block) { finish_block(context, matrix, block); });
    return;
  }
  auto* c = reinterpret_cast<float*>(context.buffers[static_cast<std::size_t>(c_.buffer)]);
  cpu::multiply_packed(*tiles_, m_, n_, terms, c + batch_offset(c_, matrix), c_.leading, false);
}

/// Many matrices, some to each thread; or one after the other, each by all threads.
void PreparedProduct::run_packed(const RunContext& context) const {
  const bool spread = batches_ >= 2 * std::int64_t{cpu_threads()} || m_ * n_ * k_ < kLargeProduct;
  parallel_ranges(batches_, spread ? threads_for(nanoseconds_, batches_) : 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) multiply_packed(context, i);
                  });
}

void PreparedProduct::finish_block(const RunContext& context, std::int64_t matrix,
                                   const ProductBlock& block) const {
  BlockRunner runner(epilogue_->block, context, scratch(kEpilogue), block.rows * block.columns);
  runner.run_rows(
      {block.data, block.row_stride, n_, matrix * m_ + block.row, block.rows, block.column, block.columns});
}

/// All rows of a matrix of the product.
void PreparedProduct::multiply_dots(const RunContext& context, const Segment& segment, std::int64_t matrix,
                                    float alpha, float* out, std::int64_t out_row, bool add) const {
  const Matrix &x = segment.a, &y = segment.b;
  const auto data = [&](const Matrix& of) {
    return context.buffers[static_cast<std::size_t>(of.buffer)] +
           batch_offset(of, matrix) * static_cast<std::int64_t>(size_of(of.type));
  };
  RowDots work{.m = m_, .n = n_, .k = segment.k, .a = reinterpret_cast<const float*>(data(x)), .a_m = x.row};
  if (is_half(x.type)) {
    float* wide = scratch_of<float>(kPackA, m_ * segment.k);
    const MicroFn cast = find_cast(x.type, DType::f32);
    for (std::int64_t i = 0; i < m_; ++i) {
      const std::byte* row = data(x) + i * x.row * static_cast<std::int64_t>(size_of(x.type));
      cast(wide + i * segment.k, row, row, row, segment.k);
    }
    work.a = wide;
    work.a_m = segment.k;
  }
  work.b = data(y);
  work.b_n = y.column;
  work.b_k = y.row;
  work.c = out;
  work.c_m = out_row;
  work.alpha = alpha;
  work.add = add;
  run_row_dots(y.type, work);
}

/// Rows [row, row + rows) of a matrix of the product, to `out`.
template <class T>
void PreparedProduct::multiply(const RunContext& context, std::int64_t matrix, std::int64_t row,
                               std::int64_t rows, T* out, std::int64_t out_row) const {
  const auto data = [&](const Matrix& x) {
    return reinterpret_cast<const T*>(context.buffers[static_cast<std::size_t>(x.buffer)]) +
           batch_offset(x, matrix);
  };
  if (segments_.empty())
    for (std::int64_t i = 0; i < rows; ++i) std::fill_n(out + i * out_row, n_, T(0));
  bool add = false;
  for (const Segment& s : segments_) {
    T alpha = T(1);
    if (s.scale >= 0) std::memcpy(&alpha, &context.scalars[static_cast<std::size_t>(s.scale)], sizeof(T));
    if constexpr (std::is_same_v<T, float>) {
      if (s.method == Method::dots) {
        multiply_dots(context, s, matrix, alpha, out, out_row, add);
        add = true;
        continue;
      }
      if (s.method == Method::halves) {
        multiply_halves(context, s, matrix, row, rows, alpha, out, out_row, add);
        add = true;
        continue;
      }
    }
    multiply<T>(s, alpha, data(s.a) + row * s.a.row, data(s.b), rows, out, out_row, add);
    add = true;
  }
}

/// Where the whole product goes if output 0 can hold it until the epilogue has seen it; nullptr if not.
std::byte* PreparedProduct::product_in_output(const RunContext& context) const {
  if (!epilogue_->in_output) return nullptr;
  const auto begin = [&](const Extent& x) {
    return context.buffers[static_cast<std::size_t>(x.buffer)] + x.first * x.size;
  };
  const auto end = [&](const Extent& x) {
    return context.buffers[static_cast<std::size_t>(x.buffer)] + (x.last + 1) * x.size;
  };
  const Extent& output = epilogue_->output;
  for (const Extent& input : epilogue_->inputs)
    if (begin(input) < end(output) && begin(output) < end(input)) return nullptr;
  return begin(output);
}

/// The epilogue of rows [row, row + rows), counted over all matrices.
void PreparedProduct::finish(const RunContext& context, const std::byte* product, std::int64_t row,
                             std::int64_t rows) const {
  BlockRunner runner(epilogue_->block, context, scratch(kEpilogue), rows * n_);
  runner.run_rows({product, n_, n_, row, rows, 0, n_});
}

/// `alone`: on the calling thread, so that threads are free for what is inside of a task.
template <class T>
void PreparedProduct::run_range(const RunContext& context, std::int64_t begin, std::int64_t end,
                                bool alone) const {
  std::byte* whole = epilogue_ ? product_in_output(context) : nullptr;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t matrix = i / row_blocks_;
    const std::int64_t row = i % row_blocks_ * row_block_;
    const std::int64_t rows = std::min(row_block_, m_ - row);
    if (!epilogue_) {
      T* c = reinterpret_cast<T*>(context.buffers[static_cast<std::size_t>(c_.buffer)]) +
             batch_offset(c_, matrix) + row * c_.row;
      if (!c_.packed) {
        multiply<T>(context, matrix, row, rows, c, c_.leading);
        continue;
      }
      T* dense = scratch_of<T>(kPackC, rows * n_);
      multiply<T>(context, matrix, row, rows, dense, n_);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < n_; ++j) c[r * c_.row + j * c_.column] = dense[r * n_ + j];
      continue;
    }
    const std::int64_t first = matrix * m_ + row;
    T* product =
        whole != nullptr ? reinterpret_cast<T*>(whole) + first * n_ : scratch_of<T>(kProduct, rows * n_);
    multiply<T>(context, matrix, row, rows, product, n_);
    const auto* bytes = reinterpret_cast<const std::byte*>(product);
    const int threads = alone ? threads_for(static_cast<double>(rows) * epilogue_nanoseconds_, rows) : 1;
    parallel_ranges(rows, threads, [&](std::int64_t from, std::int64_t to) {
      finish(context, bytes + from * n_ * static_cast<std::int64_t>(size_), first + from, to - from);
    });
  }
}

void PreparedProduct::run(const RunContext& context) const {
  if (m_ == 0 || n_ == 0 || batches_ == 0) return;
  if (tiles_ != nullptr) return run_packed(context);
  // Many matrices or rows: some to each thread. Few or large ones: threads share each product.
  const bool blas = std::any_of(segments_.begin(), segments_.end(), [](const Segment& s) {
    return s.method == Method::gemm || s.method == Method::gemv || s.method == Method::halves;
  });
  const bool spread = !blas || shares_rows_ || m_ * n_ * k_ < kLargeProduct;
  const std::int64_t tasks = batches_ * row_blocks_;
  const int threads = spread ? threads_for(nanoseconds_, tasks) : 1;
  const bool alone = threads == 1;
  parallel_ranges(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
    dispatch<is_compute_type>(type_, [&]<class T>() { run_range<Stored<T>>(context, begin, end, alone); });
  });
}

}  // namespace caldera::cpu
