#include "engine/device/cpu/products/product_step.h"

#include <algorithm>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/products/row_dots.h"
#include "engine/device/cpu/products/shared_gemm.h"

namespace caldera::cpu {
namespace {

/// Multiplications below which our own kernel beats the set-up of an OpenBLAS call, and below which it beats
/// gemv even where it must copy the matrix first.
constexpr std::int64_t kSmallProduct = 16 * 1024;
constexpr std::int64_t kSmallCopiedVector = 256;
/// Rows of C that one thread takes at a time when our own kernel computes a large product.
constexpr std::int64_t kRowBlock = 32;
/// Bytes of the product that an epilogue finds in cache, and rows below which gemm wastes its time packing.
constexpr std::int64_t kEpilogueBytes = 1024 * 1024;
constexpr std::int64_t kEpilogueRows = 128;
/// The same where every block of rows widens B again.
constexpr std::int64_t kHalvesRows = 512;
/// Terms of a sum from which it is worth a vector of its own.
constexpr std::int64_t kLeastDotTerms = 16;
/// Rows and columns from which our own packed tiles in f32 win. With few multiplications OpenBLAS multiplies
/// without packing, but not where B is transposed; with many terms and rows its order of blocks is better.
constexpr std::int64_t kTiledRows = 2, kTiledColumns = 48, kFewTiledRows = 64;
constexpr std::int64_t kTiledTerms = 1024, kMostTiledTerms = 16 * 1024;
constexpr double kTiledProduct = 1e6, kTransposedTiledProduct = 32e3;
}  // namespace

PreparedProduct::PreparedProduct(const Plan& plan, const Step& step, const ContractStep& contract,
                                 std::shared_ptr<const RegionProgram> epilogue)
    : type_(contract.epilogue ? contract.epilogue->inputs.at(0) : step.dtype), size_(size_of(type_)) {
  product_ = find_matrix_product(type_);
  if (product_ == nullptr) throw DTypeError("matmul: the CPU has no products of " + std::string(name(type_)));
  read_operands(plan, step, contract);
  if (m_ == 0 || n_ == 0 || batches_ == 0) return;
  if (contract.epilogue) read_epilogue(step, std::move(epilogue));
  merge_batches();
  free_strides();
  if (!epilogue_) arrange(c_, m_, n_, true);
  for (Segment& s : segments_) choose_method(s);
  choose_tasks();
}

void PreparedProduct::read_operands(const Plan& plan, const Step& step, const ContractStep& contract) {
  const int rank = step.dims.rank();
  m_ = step.dims[rank - 3];
  n_ = step.dims[rank - 2];
  const auto read = [&](std::size_t which, int row_dim, int column_dim) {
    const Operand& o = step.operands[which];
    Matrix x;
    x.buffer = o.buffer;
    x.type = plan.buffers[static_cast<std::size_t>(o.buffer)].dtype;
    x.offset = o.offset;
    x.row = o.strides[row_dim];
    x.column = o.strides[column_dim];
    for (int d = 0; d + 3 < rank; ++d)
      if (step.dims[d] != 1) x.batch.push_back(o.strides[d]);
    return x;
  };
  for (std::size_t s = 0; s < contract.segments.size(); ++s) {
    if (contract.segments[s].k == 0) continue;
    Segment segment;
    segment.k = contract.segments[s].k;
    segment.scale = contract.segments[s].scale;
    segment.a = read(2 * s, rank - 3, rank - 1);
    segment.b = read(2 * s + 1, rank - 1, rank - 2);
    k_ += segment.k;
    segments_.push_back(std::move(segment));
  }
  // The first output says in which order the result is in memory.
  c_ = read(step.first_output(), rank - 3, rank - 2);
  for (int d = 0; d + 3 < rank; ++d) {
    if (step.dims[d] != 1) batch_.push_back(step.dims[d]);
    batches_ *= step.dims[d];
  }
}

void PreparedProduct::read_epilogue(const Step& step, std::shared_ptr<const RegionProgram> program) {
  const int rank = step.dims.rank();
  const bool swapped = m_ != 1 && n_ != 1 && c_.column != 1 && c_.row == 1;
  if (swapped) swap_sides();
  const auto arranged = [&](const Dims& all) {  // without K, the columns of the product last
    Dims dims = all;
    dims.erase(rank - 1);
    if (swapped) std::swap(dims[rank - 3], dims[rank - 2]);
    return dims;
  };
  const Shape space(arranged(step.dims));
  std::vector<Operand> operands;
  std::vector<Extent> extents;
  const auto named = static_cast<std::size_t>(step.named_operands());
  for (std::size_t i = named; i < step.operands.size(); ++i) {
    const Operand& o = step.operands[i];
    operands.push_back({o.buffer, o.offset, arranged(o.strides)});
    Extent extent{o.buffer, o.offset, o.offset, 1};
    for (int d = 0; d < space.rank(); ++d) {
      const std::int64_t reach = (space[d] - 1) * operands.back().strides[d];
      (reach < 0 ? extent.first : extent.last) += reach;
    }
    extents.push_back(extent);
  }
  const std::size_t inputs = program->inputs.size() - 1;
  const std::size_t outputs = program->outputs.size();
  for (std::size_t i = 0; i < inputs; ++i)
    extents[i].size = static_cast<std::int64_t>(size_of(program->inputs[i + 1]));
  const std::size_t first_output = extents.size() - outputs;
  Extent output = extents[first_output];
  output.size = static_cast<std::int64_t>(size_);
  extents.resize(inputs);

  bool dense = program->outputs[0].type == type_;
  std::int64_t expected = 1;
  for (int d = space.rank(); d-- > 0;) {
    dense = dense && (space[d] == 1 || operands[first_output].strides[d] == expected);
    expected *= space[d];
  }
  epilogue_nanoseconds_ = static_cast<double>(n_) * program->nanoseconds_per_element;
  epilogue_.emplace(Epilogue{RegionBlock(std::move(program), space, operands, step.scalars, {}), dense,
                             output, std::move(extents)});
}

/// C^T = B^T A^T.
void PreparedProduct::swap_sides() {
  std::swap(m_, n_);
  std::swap(c_.row, c_.column);
  for (Segment& s : segments_) {
    std::swap(s.a, s.b);
    std::swap(s.a.row, s.a.column);
    std::swap(s.b.row, s.b.column);
  }
}

void PreparedProduct::merge_batches() {
  const auto follows = [](std::int64_t stride, std::int64_t inner_extent, std::int64_t inner) {
    return inner_extent == 1 || stride == inner * inner_extent;
  };
  const auto all_segments = [&](const auto& fits) {
    return std::all_of(segments_.begin(), segments_.end(), fits);
  };
  // The epilogue takes the product in the order of batch..., m, n, wherever it goes from there.
  const bool free_rows = epilogue_.has_value();
  while (!batch_.empty()) {
    const std::int64_t extent = batch_.back();
    const std::int64_t sc = c_.batch.back();
    const bool rows = (free_rows || follows(sc, m_, c_.row)) && all_segments([&](const Segment& s) {
                        return s.b.batch.back() == 0 && follows(s.a.batch.back(), m_, s.a.row);
                      });
    const bool columns =
        !rows && (free_rows ? m_ == 1 : follows(sc, n_, c_.column)) && all_segments([&](const Segment& s) {
          return s.a.batch.back() == 0 && follows(s.b.batch.back(), n_, s.b.column);
        });
    if (!rows && !columns) break;
    if (columns) epilogue_nanoseconds_ *= static_cast<double>(extent);
    if (rows && m_ == 1) {
      c_.row = sc;
      for (Segment& s : segments_) s.a.row = s.a.batch.back();
    }
    if (columns && n_ == 1) {
      c_.column = sc;
      for (Segment& s : segments_) s.b.column = s.b.batch.back();
    }
    (rows ? m_ : n_) *= extent;
    batches_ /= extent;
    batch_.pop_back();
    c_.batch.pop_back();
    for (Segment& s : segments_) {
      s.a.batch.pop_back();
      s.b.batch.pop_back();
    }
  }
}

/// Strides of a dim of one element are free: dense ones fit the most cases.
void PreparedProduct::free_strides() {
  for (Segment& s : segments_) {
    if (s.k == 1) {
      s.a.column = 1;
      s.b.row = n_ == 1 || s.b.column == 0 ? 1 : s.b.column * n_;
    }
    if (m_ == 1) s.a.row = s.a.column * s.k;
    if (n_ == 1) s.b.column = 1;
  }
  if (m_ == 1) c_.row = c_.column * n_;
  if (n_ == 1) c_.column = 1;
  if (!epilogue_ && c_.column != 1 && c_.row == 1) swap_sides();
}

/// How gemm sees a matrix of rows x columns, or that it must be packed.
void PreparedProduct::arrange(Matrix& x, std::int64_t rows, std::int64_t columns,
                              bool rows_dense_only) const {
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

/// Few rows of A, and B in memory's order, along the sums, or across them where it would have to be widened
/// first: OpenBLAS would pack it.
bool PreparedProduct::fits_dots(const Segment& segment) const {
  const Matrix &a = segment.a, &b = segment.b;
  const bool is_narrow = is_half(a.type) || a.type == DType::f32;
  return type_ == DType::f32 && is_narrow && find_row_dots(b.type) != nullptr && m_ <= kMostDotRows &&
         n_ > 1 && segment.k >= kLeastDotTerms && a.column == 1 &&
         (b.row == 1 || (b.column == 1 && is_half(b.type)));
}

void PreparedProduct::choose_method(Segment& segment) const {
  if (fits_dots(segment)) {
    segment.method = Method::dots;
    return;
  }
  if (is_half(segment.a.type) || is_half(segment.b.type)) {
    segment.method = Method::halves;
    return;
  }
  const double work = static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(segment.k);
  constexpr double kIntLimit = std::numeric_limits<int>::max();
  const bool fits = static_cast<double>(std::max({m_, n_, segment.k})) <= kIntLimit;
  const bool vector = m_ == 1 || n_ == 1;
  const bool copies = n_ > 1 && segment.b.column != 1;
  // Some versions of gemv multiply the vector by alpha, where the terms may be too large or too small for it.
  const bool early_factor = vector && segment.scale >= 0;
  const auto small = static_cast<double>(vector && copies ? kSmallCopiedVector : kSmallProduct);
  if (!is_floating(type_) || !fits || work <= small || early_factor || !openblas().available()) {
    segment.method = Method::product;
    segment.b.packed = copies;
    return;
  }
  segment.method = vector ? Method::gemv : Method::gemm;
  arrange(segment.a, m_, segment.k, false);
  arrange(segment.b, segment.k, n_, false);
}

/// Says whether tiles in f32 are the fastest way for all segments. Types are not asked for: numbers stored in
/// 16 bits are multiplied as the same numbers in f32 are.
bool PreparedProduct::fits_tiles() const {
  if (m_ < kTiledRows || n_ < kTiledColumns || k_ > kMostTiledTerms) return false;
  const auto any = [&](const auto& is) { return std::ranges::any_of(segments_, is); };
  if (!openblas().available()) return true;
  const double work = static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_);
  const bool transposed = any([](const Segment& s) { return s.b.column != 1; });
  return work >= (transposed ? kTransposedTiledProduct : kTiledProduct) &&
         (k_ <= kTiledTerms || m_ <= kFewTiledRows);
}

/// Tiles for all segments: of pairs where all of them are bf16, else in f32 where they fit.
const PanelTiles* PreparedProduct::find_tiles() const {
  if (segments_.empty() || type_ != DType::f32 || (!epilogue_ && c_.packed)) return nullptr;
  const auto all = [&](const auto& is) { return std::ranges::all_of(segments_, is); };
  if (!all([](const Segment& s) { return s.method != Method::dots; })) return nullptr;
  if (all([](const Segment& s) { return s.a.type == DType::bf16 && s.b.type == DType::bf16; }))
    if (const PanelTiles* pairs = find_bf16_tiles()) return pairs;
  return fits_tiles() ? find_f32_tiles() : nullptr;
}

void PreparedProduct::choose_tasks() {
  const double points = static_cast<double>(batches_) * static_cast<double>(m_) * static_cast<double>(n_);
  nanoseconds_ = points * static_cast<double>(k_) * (is_floating(type_) ? 0.01 : 0.5) +
                 static_cast<double>(batches_ * m_) * epilogue_nanoseconds_;
  row_block_ = m_;
  tiles_ = find_tiles();
  if (tiles_ != nullptr) {
    for (Segment& s : segments_) s.method = Method::packed;
    return;
  }
  const bool repacks = (!epilogue_ && c_.packed) || std::any_of(segments_.begin(), segments_.end(),
                                                                [](const Segment& s) { return s.b.packed; });
  if (repacks) return;
  const bool own = std::all_of(segments_.begin(), segments_.end(),
                               [](const Segment& s) { return s.method == Method::product; });
  const bool halves =
      std::ranges::any_of(segments_, [](const Segment& s) { return s.method == Method::halves; });
  if (own && m_ * n_ * k_ > kLargeProduct / 4) row_block_ = kRowBlock;
  if (epilogue_) {
    const std::int64_t cached = kEpilogueBytes / (n_ * static_cast<std::int64_t>(size_));
    row_block_ = std::min(row_block_, std::max(cached, halves ? kHalvesRows : kEpilogueRows));
  }
  row_blocks_ = (m_ + row_block_ - 1) / row_block_;
  const bool gemm = std::ranges::all_of(segments_, [](const Segment& s) { return s.method == Method::gemm; });
  const auto threads = static_cast<std::int64_t>(cpu_threads());
  shares_rows_ = gemm && m_ >= threads * kGemmRowsOfThread;
  if (shares_rows_) row_blocks_ = (row_blocks_ + threads - 1) / threads * threads;
  row_block_ = (m_ + row_blocks_ - 1) / row_blocks_;
  // So a row has the same bits with an epilogue and without one.
  if (gemm) row_block_ = (row_block_ + kGemmRows - 1) / kGemmRows * kGemmRows;
  row_blocks_ = (m_ + row_block_ - 1) / row_block_;
}

}  // namespace caldera::cpu
