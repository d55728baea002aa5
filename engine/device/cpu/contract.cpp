#include "engine/device/cpu/contract.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "engine/device/cpu/openblas.h"
#include "engine/device/cpu/scratch.h"
#include "engine/device/cpu/threads.h"
#include "engine/tensor/error.h"

namespace caldera::cpu {
namespace {

/// Multiplications below which our own kernel beats the set-up of an OpenBLAS call.
constexpr std::int64_t kSmallProduct = 16 * 1024;
/// Multiplications of one matrix above which OpenBLAS makes good use of all threads by itself.
constexpr std::int64_t kLargeProduct = 4 * 1024 * 1024;
/// Rows of C that one thread takes at a time when our own kernel computes a large product.
constexpr std::int64_t kRowBlock = 32;

Scratch& pack_scratch(int which) {
  thread_local Scratch scratch[3];
  return scratch[which];
}

template <class T>
const T* pack(Scratch& scratch, const T* from, std::int64_t rows, std::int64_t columns,
              std::int64_t row_stride, std::int64_t column_stride) {
  auto* to = reinterpret_cast<T*>(scratch.get(static_cast<std::size_t>(rows * columns) * sizeof(T)));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = from[r * row_stride + c * column_stride];
  return to;
}

template <class T>
OpenBlas::Gemm<T> gemm_of(const OpenBlas& blas) {
  if constexpr (std::is_same_v<T, float>)
    return blas.sgemm;
  else
    return blas.dgemm;
}
template <class T>
OpenBlas::Gemv<T> gemv_of(const OpenBlas& blas) {
  if constexpr (std::is_same_v<T, float>)
    return blas.sgemv;
  else
    return blas.dgemv;
}

}  // namespace

ContractStep::ContractStep(const Step& step) : type_(step.dtype), size_(size_of(step.dtype)) {
  product_ = find_matrix_product(type_);
  if (product_ == nullptr) throw DTypeError("matmul: the CPU has no products of " + std::string(name(type_)));
  const int rank = step.dims.rank();
  m_ = step.dims[rank - 3];
  n_ = step.dims[rank - 2];
  k_ = step.dims[rank - 1];
  const auto read = [&](int which, int row_dim, int column_dim) {
    const Operand& o = step.operands[static_cast<std::size_t>(which)];
    Matrix x;
    x.buffer = o.buffer;
    x.offset = o.offset;
    x.row = o.strides[row_dim];
    x.column = o.strides[column_dim];
    for (int d = 0; d + 3 < rank; ++d)
      if (step.dims[d] != 1) x.batch.push_back(o.strides[d]);
    return x;
  };
  a_ = read(0, rank - 3, rank - 1);
  b_ = read(1, rank - 1, rank - 2);
  c_ = read(2, rank - 3, rank - 2);
  for (int d = 0; d + 3 < rank; ++d) {
    if (step.dims[d] != 1) batch_.push_back(step.dims[d]);
    batches_ *= step.dims[d];
  }
  if (m_ == 0 || n_ == 0 || batches_ == 0) return;
  method_ = Method::zero;
  merge_batches();
  if (k_ > 0)
    choose();
  else
    arrange(c_, m_, n_, true);
  row_block_ = m_;
  if (method_ == Method::product && m_ * n_ * k_ > kLargeProduct / 4 && !b_.packed && !c_.packed) {
    row_block_ = kRowBlock;
    row_blocks_ = (m_ + kRowBlock - 1) / kRowBlock;
  }
}

void ContractStep::merge_batches() {
  while (!batch_.empty()) {
    const std::int64_t extent = batch_.back();
    const std::int64_t sa = a_.batch.back();
    const std::int64_t sb = b_.batch.back();
    const std::int64_t sc = c_.batch.back();
    const auto follows = [](std::int64_t stride, std::int64_t inner_extent, std::int64_t inner) {
      return inner_extent == 1 || stride == inner * inner_extent;
    };
    if (sb == 0 && follows(sa, m_, a_.row) && follows(sc, m_, c_.row)) {
      if (m_ == 1) {
        a_.row = sa;
        c_.row = sc;
      }
      m_ *= extent;
    } else if (sa == 0 && follows(sb, n_, b_.column) && follows(sc, n_, c_.column)) {
      if (n_ == 1) {
        b_.column = sb;
        c_.column = sc;
      }
      n_ *= extent;
    } else {
      break;
    }
    batches_ /= extent;
    batch_.pop_back();
    a_.batch.pop_back();
    b_.batch.pop_back();
    c_.batch.pop_back();
  }
  // Strides of a dim of one element are free: dense ones fit every case below.
  if (k_ == 1) {
    a_.column = 1;
    b_.row = n_ == 1 || b_.column == 0 ? 1 : b_.column * n_;
  }
  if (m_ == 1) {
    a_.row = a_.column * std::max<std::int64_t>(k_, 1);
    c_.row = c_.column * n_;
  }
  if (n_ == 1) {
    b_.column = 1;
    c_.column = 1;
  }
}

/// How gemm sees a matrix of rows x columns, or that it must be packed.
void ContractStep::arrange(Matrix& x, std::int64_t rows, std::int64_t columns, bool rows_dense_only) const {
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  const bool plain = (x.column == 1 || columns == 1) && (x.row >= columns || rows == 1) && x.row <= limit;
  const bool transposed =
      (x.row == 1 || rows == 1) && (x.column >= rows || columns == 1) && x.column <= limit;
  if (plain && x.row >= 0) {
    x.leading = std::max({x.row, columns, std::int64_t{1}});
  } else if (transposed && x.column >= 0 && !rows_dense_only) {
    x.transposed = true;
    x.leading = std::max({x.column, rows, std::int64_t{1}});
  } else {
    x.packed = true;
    x.leading = columns;
  }
}

void ContractStep::choose() {
  const double work = static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_);
  nanoseconds_ = work * static_cast<double>(batches_) * (is_floating(type_) ? 0.01 : 0.5);
  if (c_.column != 1 && c_.row == 1) {  // C^T = B^T A^T
    std::swap(a_, b_);
    std::swap(m_, n_);
    std::swap(a_.row, a_.column);
    std::swap(b_.row, b_.column);
    std::swap(c_.row, c_.column);
  }
  constexpr double kIntLimit = std::numeric_limits<int>::max();
  const bool fits = static_cast<double>(std::max({m_, n_, k_})) <= kIntLimit;
  const bool blas =
      is_floating(type_) && fits && work > static_cast<double>(kSmallProduct) && openblas().available();
  arrange(c_, m_, n_, true);
  if (!blas) {
    method_ = Method::product;
    b_.packed = n_ > 1 && b_.column != 1;
    return;
  }
  method_ = m_ == 1 || n_ == 1 ? Method::gemv : Method::gemm;
  arrange(a_, m_, k_, false);
  arrange(b_, k_, n_, false);
}

std::int64_t ContractStep::batch_offset(const Matrix& x, std::int64_t index) const {
  std::int64_t offset = x.offset;
  for (std::size_t d = batch_.size(); d-- > 0;) {
    offset += index % batch_[d] * x.batch[d];
    index /= batch_[d];
  }
  return offset;
}

template <class T>
void ContractStep::run_one(const T* a, const T* b, T* c, std::int64_t rows) const {
  if (a_.packed) a = pack(pack_scratch(0), a, m_, k_, a_.row, a_.column);
  if (b_.packed) b = pack(pack_scratch(1), b, k_, n_, b_.row, b_.column);
  T* out = c;
  std::int64_t out_row = c_.leading;
  if (c_.packed) {
    out = reinterpret_cast<T*>(pack_scratch(2).get(static_cast<std::size_t>(m_ * n_) * sizeof(T)));
    out_row = n_;
  }
  if (method_ == Method::zero) {
    for (std::int64_t i = 0; i < m_; ++i) std::fill_n(out + i * out_row, n_, T(0));
  } else if (method_ == Method::product) {
    product_(rows, n_, k_, a, a_.row, a_.column, b, b_.packed ? n_ : b_.row, out, out_row);
  } else if constexpr (std::is_floating_point_v<T>) {
    const OpenBlas& blas = openblas();
    const auto trans = [](const Matrix& x) { return x.transposed ? OpenBlas::kTrans : OpenBlas::kNoTrans; };
    const auto opposite = [](const Matrix& x) {
      return x.transposed ? OpenBlas::kNoTrans : OpenBlas::kTrans;
    };
    const auto as_int = [](std::int64_t v) { return static_cast<int>(v); };
    // Stored rows and columns of a matrix as gemv wants them.
    const auto gemv = [&](int mode, const Matrix& x, std::int64_t height, std::int64_t width, const T* matrix,
                          const T* vector, std::int64_t vector_stride, std::int64_t out_stride,
                          std::int64_t length) {
      // beta = 1 on zeros: some versions multiply what lies in the output by beta = 0, NaN included.
      for (std::int64_t i = 0; i < length; ++i) out[i * out_stride] = T(0);
      if (x.transposed) std::swap(height, width);
      gemv_of<T>(blas)(OpenBlas::kRowMajor, mode, as_int(height), as_int(width), T(1), matrix,
                       as_int(x.leading), vector, as_int(vector_stride), T(1), out, as_int(out_stride));
    };
    if (method_ == Method::gemm) {
      gemm_of<T>(blas)(OpenBlas::kRowMajor, trans(a_), trans(b_), as_int(m_), as_int(n_), as_int(k_), T(1), a,
                       as_int(a_.leading), b, as_int(b_.leading), T(0), out, as_int(out_row));
    } else if (n_ == 1) {
      gemv(trans(a_), a_, m_, k_, a, b, b_.packed || !(b_.row > 0) ? 1 : b_.row, out_row, m_);
    } else {
      gemv(opposite(b_), b_, k_, n_, b, a, a_.packed || !(a_.column > 0) ? 1 : a_.column, 1, n_);
    }
  }
  if (c_.packed)
    for (std::int64_t i = 0; i < m_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) c[i * c_.row + j * c_.column] = out[i * n_ + j];
}

template <class T>
void ContractStep::run_range(const RunContext& context, std::int64_t begin, std::int64_t end) const {
  const auto base = [&](const Matrix& x) {
    return reinterpret_cast<T*>(context.buffers[static_cast<std::size_t>(x.buffer)]);
  };
  const T* a = base(a_);
  const T* b = base(b_);
  T* c = base(c_);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t matrix = i / row_blocks_;
    const std::int64_t row = i % row_blocks_ * row_block_;
    run_one<T>(a + batch_offset(a_, matrix) + row * a_.row, b + batch_offset(b_, matrix),
               c + batch_offset(c_, matrix) + row * c_.row, std::min(row_block_, m_ - row));
  }
}

void ContractStep::run(const RunContext& context) const {
  if (method_ == Method::nothing) return;
  // Many matrices: some to each thread, where OpenBLAS finds itself in a parallel region and stays on it. Few
  // or large ones: OpenBLAS's own threads, if the work is worth their waking.
  const bool blas = method_ == Method::gemm || method_ == Method::gemv;
  const bool spread = !blas || m_ * n_ * k_ < kLargeProduct;
  const std::int64_t tasks = batches_ * row_blocks_;
  const int threads = spread ? threads_for(nanoseconds_, tasks) : 1;
  std::optional<BlasThreads> inside;
  if (blas && threads == 1 && !in_parallel())
    inside.emplace(nanoseconds_ / static_cast<double>(batches_) < kParallelNanoseconds ? 1 : cpu_threads());
  parallel_ranges(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
    switch (type_) {
      case DType::f32:
        return run_range<float>(context, begin, end);
      case DType::f64:
        return run_range<double>(context, begin, end);
      case DType::i32:
        return run_range<std::int32_t>(context, begin, end);
      case DType::i64:
        return run_range<std::int64_t>(context, begin, end);
      default:
        return run_range<std::uint8_t>(context, begin, end);
    }
  });
}

}  // namespace caldera::cpu
