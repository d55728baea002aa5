// A contraction step made ready: batches merged into rows or columns where the strides allow, the method
// for one matrix chosen for each segment, the epilogue bound.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/cpu/products/half_product.h"
#include "engine/device/cpu/products/matrix.h"
#include "engine/device/cpu/products/packed_product.h"
#include "engine/device/cpu/regions/region_block.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class PreparedProduct {
 public:
  /// `epilogue`: the program of the contraction's epilogue; null if it has none. Throws DTypeError for a type
  /// without products. A and B have the types of their buffers.
  PreparedProduct(const Plan& plan, const Step& step, const ContractStep& contract,
                  std::shared_ptr<const RegionProgram> epilogue);
  void run(const RunContext& context) const;

 private:
  /// Multiplications of one matrix above which OpenBLAS makes good use of all threads by itself.
  static constexpr std::int64_t kLargeProduct = 4 * 1024 * 1024;

  enum class Method : std::uint8_t {
    gemm,     // OpenBLAS
    gemv,     // OpenBLAS, one row or column
    product,  // our own kernel
    halves,   // A or B is of a 16-bit type: see half_product.h
    packed,   // our own tiles, in f32 or of pairs of bf16: see packed_product.h
    dots,     // few rows of A, and columns of B that are contiguous, or narrow rows: see row_dots.h
  };
  /// One matrix operand: the strides of its rows and columns.
  struct Matrix {
    std::int32_t buffer = -1;
    DType type = DType::f32;
    std::int64_t offset = 0;
    std::int64_t row = 0;
    std::int64_t column = 0;
    std::vector<std::int64_t> batch;
    // Set by `arrange`: whether it is copied into dense scratch first, and as gemm sees it.
    bool packed = false;
    bool transposed = false;
    std::int64_t leading = 1;
  };
  struct Segment {
    std::int64_t k = 0;
    std::int32_t scale = -1;  // plan scalar
    Matrix a, b;
    Method method = Method::product;
  };
  /// Memory of an operand of the epilogue: elements [first, last] of its buffer.
  struct Extent {
    std::int32_t buffer = -1;
    std::int64_t first = 0, last = 0;
    std::int64_t size = 4;  // of an element
  };
  /// Turns a block of the product into outputs.
  struct Epilogue {
    RegionBlock block;
    /// Whether output 0 could hold the product meanwhile, and what it must not share memory with for that.
    bool in_output = false;
    Extent output;
    std::vector<Extent> inputs;
  };

  void read_operands(const Plan& plan, const Step& step, const ContractStep& contract);
  void read_epilogue(const Step& step, std::shared_ptr<const RegionProgram> program);
  void swap_sides();
  void merge_batches();
  void free_strides();
  void arrange(Matrix& x, std::int64_t rows, std::int64_t columns, bool rows_dense_only) const;
  void choose_method(Segment& segment) const;
  void choose_tasks();

  /// Tasks [begin, end): matrix after matrix, `row_blocks_` a matrix.
  template <class T>
  void run_range(const RunContext& context, std::int64_t begin, std::int64_t end, bool alone) const;
  template <class T>
  void multiply(const RunContext& context, std::int64_t matrix, std::int64_t row, std::int64_t rows, T* out,
                std::int64_t out_row) const;
  template <class T>
  void multiply(const Segment& segment, T alpha, const T* a, const T* b, std::int64_t rows, T* out,
                std::int64_t out_row, bool add) const;
  template <class T>
  void multiply_blas(const Segment& segment, T alpha, const T* a, const T* b, std::int64_t rows, T* out,
                     std::int64_t out_row, bool add) const;
  FloatMatrix float_matrix(const RunContext& context, const Matrix& x, std::int64_t matrix,
                           std::int64_t row) const;
  void multiply_halves(const RunContext& context, const Segment& segment, std::int64_t matrix,
                       std::int64_t row, std::int64_t rows, float alpha, float* out, std::int64_t out_row,
                       bool add) const;
  bool fits_tiles() const;
  const PanelTiles* find_tiles() const;
  void run_packed(const RunContext& context) const;
  void multiply_packed(const RunContext& context, std::int64_t matrix) const;
  bool fits_dots(const Segment& segment) const;
  void multiply_dots(const RunContext& context, const Segment& segment, std::int64_t matrix, float alpha,
                     float* out, std::int64_t out_row, bool add) const;
  void finish(const RunContext& context, const std::byte* product, std::int64_t row, std::int64_t rows) const;
  void finish_block(const RunContext& context, std::int64_t matrix, const ProductBlock& block) const;
  std::byte* product_in_output(const RunContext& context) const;
  std::int64_t batch_offset(const Matrix& x, std::int64_t index) const;

  DType type_;
  std::size_t size_ = 4;
  MatrixFn product_ = nullptr;
  std::int64_t m_ = 0, n_ = 0;
  std::int64_t k_ = 0;  // of all segments together
  std::vector<std::int64_t> batch_;
  std::int64_t batches_ = 1;
  std::int64_t row_block_ = 0;  // rows of C a task
  std::int64_t row_blocks_ = 1;
  bool shares_rows_ = false;           // threads take row blocks
  const PanelTiles* tiles_ = nullptr;  // of all segments, whose blocks go where they belong; or null
  std::vector<Segment> segments_;      // those with k > 0; none: C is zero
  Matrix c_;                           // without an epilogue
  std::optional<Epilogue> epilogue_;   // over batch..., m, n
  double nanoseconds_ = 0;
  double epilogue_nanoseconds_ = 0;  // a row
};

}  // namespace caldera::cpu
