// Element-wise kernels over blocks of points, as contractions and attention use them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/device/cpu/machine_code/machine_code.h"
#include "engine/device/cpu/regions/region_block.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::cpu {
namespace {

using testing::view;

std::uint64_t bits_of(float x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, 4);
  return bits;
}

/// select(j <= i + shift, p * scale, -1): a masked score. p is given, and so is the result.
std::shared_ptr<Kernel> masked_score() {
  auto k = std::make_shared<Kernel>();
  k->name = "score";
  k->inputs = {DType::f32};
  k->index_count = 2;
  k->scalars = {DType::f32, DType::i32, DType::f32};
  k->code = {{ScalarOp::load, DType::f32, 0, 0, 0},   {ScalarOp::scalar, DType::f32, 0, 0, 0},
             {ScalarOp::mul, DType::f32, 0, 1, 0},    {ScalarOp::index, DType::i32, 0, 0, 0},
             {ScalarOp::index, DType::i32, 1, 0, 0},  {ScalarOp::scalar, DType::i32, 1, 0, 0},
             {ScalarOp::add, DType::i32, 3, 5, 0},    {ScalarOp::less_equal, DType::boolean, 4, 6, 0},
             {ScalarOp::scalar, DType::f32, 2, 0, 0}, {ScalarOp::select, DType::f32, 7, 2, 8}};
  k->outputs = {{9, DType::f32}};
  k->finish();
  return k;
}

TEST(CpuBlocks, AScoreIsComputedInPlaceForAnyStretchOfARow) {
  std::uint64_t compiled = 0;
  const auto kernel = masked_score();
  const std::int64_t batch = 3;
  const std::int64_t m = 5;
  const std::int64_t n = 2700;
  const std::vector<Operand> operands = {view(-1, {0, 1, 0, 0}), view(-1, {0, 0, 1, 0})};
  const std::vector<std::int32_t> scalars = {0, 1, 2};
  const RegionBlock block(decode_cached(*kernel, compiled), Shape{batch, m, n}, operands, scalars,
                          {.inputs = 1, .outputs = 1});
  const std::vector<std::uint64_t> values = {bits_of(0.5F), 40, bits_of(-1.0F)};
  Scratch scratch;
  BlockRunner runner(block, {{}, values}, scratch, n);
  for (const auto& [row, first, count] :
       {std::array<std::int64_t, 3>{4, 0, 2700}, {0, 30, 16}, {14, 2699, 1}, {7, 37, 1500}, {7, 5, 7}}) {
    std::vector<float> p(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = 3.0F + static_cast<float>(i);
    const std::vector<float> before = p;
    const void* inputs[] = {p.data()};
    void* outputs[] = {p.data()};
    runner.run(row * n + first, count, inputs, outputs);
    for (std::int64_t i = 0; i < count; ++i) {
      const float want = first + i <= row % m + 40 ? before[static_cast<std::size_t>(i)] * 0.5F : -1.0F;
      ASSERT_EQ(p[static_cast<std::size_t>(i)], want) << "row " << row << ", column " << first + i;
    }
  }
}

/// Two given inputs, operands of all kinds, an output that is stored transposed and one that is given.
TEST(CpuBlocks, OperandsOfThePlanAreReadAndWrittenAtTheirPoints) {
  Kernel k;
  k.name = "epilogue";
  k.inputs = {DType::f32, DType::f32, DType::f32, DType::f32};
  k.code = {{ScalarOp::load, DType::f32, 0, 0, 0}, {ScalarOp::load, DType::f32, 1, 0, 0},
            {ScalarOp::load, DType::f32, 2, 0, 0}, {ScalarOp::load, DType::f32, 3, 0, 0},
            {ScalarOp::mul, DType::f32, 0, 1, 0},  {ScalarOp::add, DType::f32, 4, 2, 0},
            {ScalarOp::add, DType::f32, 5, 3, 0}};
  k.outputs = {{4, DType::f32}, {6, DType::f32}};
  k.finish();
  const std::int64_t rows = 64;
  const std::int64_t columns = 96;
  std::vector<float> bias(columns);
  std::vector<float> residual(rows * columns);
  std::vector<float> out(rows * columns, NAN);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = static_cast<float>(1000 + i);
  std::byte* buffers[] = {reinterpret_cast<std::byte*>(bias.data()),
                          reinterpret_cast<std::byte*>(residual.data()),
                          reinterpret_cast<std::byte*>(out.data())};
  const std::vector<Operand> operands = {view(0, {0, 1, 0}), view(1, {columns, 1, 0}), view(2, {1, rows, 0})};
  std::uint64_t compiled = 0;
  const RegionBlock block(decode_cached(k, compiled), Shape{rows, columns}, operands, {},
                          {.inputs = 2, .outputs = 1});
  Scratch scratch;
  BlockRunner runner(block, {buffers, {}}, scratch, 1);
  const std::int64_t width = 40;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t first = 0; first < columns; first += width) {
      const std::int64_t n = std::min(width, columns - first);
      std::vector<float> a(static_cast<std::size_t>(n), 2.0F);
      std::vector<float> b(static_cast<std::size_t>(n), static_cast<float>(r));
      std::vector<float> product(static_cast<std::size_t>(n), NAN);
      const void* inputs[] = {a.data(), b.data()};
      void* outputs[] = {product.data()};
      runner.run(r * columns + first, n, inputs, outputs);
      for (float p : product) ASSERT_EQ(p, 2.0F * static_cast<float>(r));
    }
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      ASSERT_EQ(out[static_cast<std::size_t>(c * rows + r)],
                2.0F * static_cast<float>(r) + bias[static_cast<std::size_t>(c)] +
                    residual[static_cast<std::size_t>(r * columns + c)])
          << r << ", " << c;
}

/// (g + bias) * row factor, and that in bf16, over blocks of rows and columns that are given `apart` elements
/// apart; with `columns` in a row of the space.
void check_rows(std::int64_t columns, std::int64_t apart) {
  SCOPED_TRACE(std::to_string(columns) + " columns");
  Kernel k;
  k.name = "epilogue of " + std::to_string(columns);
  k.inputs = {DType::f32, DType::f32, DType::f32};
  k.scalars = {DType::f32};
  k.code = {{ScalarOp::load, DType::f32, 0, 0, 0}, {ScalarOp::load, DType::f32, 1, 0, 0},
            {ScalarOp::load, DType::f32, 2, 0, 0}, {ScalarOp::add, DType::f32, 0, 1, 0},
            {ScalarOp::mul, DType::f32, 3, 2, 0},  {ScalarOp::scalar, DType::f32, 0, 0, 0},
            {ScalarOp::add, DType::f32, 4, 5, 0}};
  k.outputs = {{6, DType::f32}, {0, DType::f32}};
  k.finish();
  const std::int64_t rows = 24;
  std::vector<float> bias(static_cast<std::size_t>(columns)), factor(rows);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < factor.size(); ++i) factor[i] = static_cast<float>(i + 1);
  std::vector<float> out(static_cast<std::size_t>(rows * columns), NAN), copy = out;
  std::byte* buffers[] = {
      reinterpret_cast<std::byte*>(bias.data()), reinterpret_cast<std::byte*>(factor.data()),
      reinterpret_cast<std::byte*>(out.data()), reinterpret_cast<std::byte*>(copy.data())};
  const std::vector<Operand> operands = {view(0, {0, 0, 1}), view(1, {8, 1, 0}),
                                         view(2, {8 * columns, columns, 1}),
                                         view(3, {8 * columns, columns, 1})};
  std::uint64_t compiled = 0;
  const RegionBlock block(decode_cached(k, compiled), Shape{3, 8, columns}, operands,
                          std::vector<std::int32_t>{0}, {.inputs = 1, .outputs = 0});
  const std::vector<std::uint64_t> values = {bits_of(0.25F)};
  const std::int64_t half = std::max<std::int64_t>(columns / 2, 1);
  for (std::int64_t row = 0; row < rows; row += 5) {
    for (std::int64_t column = 0; column < columns; column += half) {
      const std::int64_t count = std::min<std::int64_t>(5, rows - row),
                         width = std::min(half, columns - column);
      std::vector<float> given(static_cast<std::size_t>(count * apart));
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t c = 0; c < width; ++c)
          given[static_cast<std::size_t>(r * apart + c)] = static_cast<float>((row + r) * 7 + column + c);
      Scratch scratch;
      BlockRunner runner(block, {buffers, values}, scratch, count * width);
      runner.run_rows({given.data(), apart, columns, row, count, column, width});
    }
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto at = static_cast<std::size_t>(r * columns + c);
      const auto given = static_cast<float>(r * 7 + c);
      ASSERT_EQ(copy[at], given) << r << ", " << c;
      ASSERT_EQ(out[at],
                (given + bias[static_cast<std::size_t>(c)]) * factor[static_cast<std::size_t>(r)] + 0.25F)
          << r << ", " << c;
    }
}

TEST(CpuBlocks, RowsOfABlockAreTakenWhereTheyAreByMachineCode) {
  const MachineCodeUse before = machine_code_use();
  for (const MachineCodeUse use : {MachineCodeUse::never, MachineCodeUse::always}) {
    set_machine_code_use(use);
    for (const std::int64_t columns : {1, 7, 33, 300, 700}) check_rows(columns, columns + 3);
  }
  set_machine_code_use(before);
}

}  // namespace
}  // namespace caldera::cpu
