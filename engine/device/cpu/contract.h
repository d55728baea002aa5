// A contraction step made ready: batches merged into rows or columns where the strides allow, the way to
// compute one matrix chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/plan.h"
#include "engine/device/cpu/matrix.h"
#include "engine/device/cpu/region_step.h"

namespace caldera::cpu {

class ContractStep {
 public:
  /// Throws DTypeError for a type without products.
  explicit ContractStep(const Step& step);
  void run(const RunContext& context) const;

 private:
  enum class Method : std::uint8_t {
    nothing,  // no elements
    zero,     // a sum over nothing
    gemm,     // OpenBLAS
    gemv,     // OpenBLAS, one row or column
    product,  // our own kernel
  };
  /// One matrix operand: the strides of its rows and columns.
  struct Matrix {
    std::int32_t buffer = -1;
    std::int64_t offset = 0;
    std::int64_t row = 0;
    std::int64_t column = 0;
    std::vector<std::int64_t> batch;
    // Set by `choose`: whether it is copied into dense scratch first, and as gemm sees it.
    bool packed = false;
    bool transposed = false;
    std::int64_t leading = 1;
  };

  void merge_batches();
  void choose();
  void arrange(Matrix& x, std::int64_t rows, std::int64_t columns, bool rows_dense_only) const;
  /// Tasks [begin, end): matrix after matrix, `row_blocks_` a matrix.
  template <class T>
  void run_range(const RunContext& context, std::int64_t begin, std::int64_t end) const;
  template <class T>
  void run_one(const T* a, const T* b, T* c, std::int64_t rows) const;
  std::int64_t batch_offset(const Matrix& x, std::int64_t index) const;

  DType type_;
  std::size_t size_ = 4;
  Method method_ = Method::nothing;
  MatrixFn product_ = nullptr;
  std::int64_t m_ = 0, n_ = 0, k_ = 0;
  std::vector<std::int64_t> batch_;
  std::int64_t batches_ = 1;
  std::int64_t row_block_ = 0;  // rows of C a task; all of them but for large products of our own
  std::int64_t row_blocks_ = 1;
  Matrix a_, b_, c_;
  double nanoseconds_ = 0;
};

}  // namespace caldera::cpu
