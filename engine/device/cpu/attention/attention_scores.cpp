#include "engine/device/cpu/attention/attention_scores.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/device/cpu/tiles/tile_routine.h"
#include "engine/tensor/dispatch.h"

namespace caldera::cpu {
namespace {

/// Columns from which a row apart from the next is worth a tile of its own, as that saves copying it.
constexpr std::int64_t kWideRow = 64;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// distance / step, which is 1 but for strange kernels: divisions take longer than a short tile.
std::int64_t steps_to(std::int64_t distance, std::int64_t step) {
  return step == 1 ? distance : distance / step;
}

/// The machine code of a variant, if there is some by now. `points`: that it is asked for.
RowFunction machine_for(const RegionProgram& program, std::int64_t points) {
  return machine_code_of(program, static_cast<double>(points) * program.nanoseconds_per_element);
}

/// A block of rows x columns with strides.
struct Strided {
  std::int64_t rows, columns, row, column;
  /// Whether it is in memory as a dense tile does.
  bool dense() const { return (column == 1 || columns == 1) && (row == columns || rows == 1); }
};

template <class T>
void load_block(T* to, const T* from, const Strided& s) {
  if (s.row == 1 && s.column != 1) {  // in the order of memory
    for (std::int64_t c = 0; c < s.columns; ++c)
      for (std::int64_t r = 0; r < s.rows; ++r) to[r * s.columns + c] = from[c * s.column + r];
    return;
  }
  for (std::int64_t r = 0; r < s.rows; ++r, to += s.columns, from += s.row) {
    if (s.column == 0)
      std::fill_n(to, s.columns, *from);
    else if (s.column == 1)
      std::copy_n(from, s.columns, to);
    else
      for (std::int64_t c = 0; c < s.columns; ++c) to[c] = from[c * s.column];
  }
}

/// Index operands: an element's offset is its value.
template <class T>
void generate_block(std::byte* out, std::int64_t element, const Strided& s) {
  T* to = reinterpret_cast<T*>(out);
  for (std::int64_t r = 0; r < s.rows; ++r, to += s.columns) {
    const std::int64_t first = element + r * s.row;
    if (s.column == 0)
      std::fill_n(to, s.columns, static_cast<T>(first));
    else
      for (std::int64_t c = 0; c < s.columns; ++c) to[c] = static_cast<T>(first + c * s.column);
  }
}

void load_strided(std::size_t size, std::byte* to, const std::byte* from, const Strided& s) {
  const auto as = [&](auto element) {
    using T = decltype(element);
    load_block(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), s);
  };
  if (size == 1) return as(std::uint8_t{});
  if (size == 2) return as(std::uint16_t{});
  if (size == 4) return as(std::uint32_t{});
  as(std::uint64_t{});
}

}  // namespace

ScoreKernel::Variant ScoreKernel::make_variant(const Kernel& kernel, std::size_t given) {
  std::uint64_t compiled = 0;
  Variant variant{decode_cached(kernel, compiled), {}};
  const RegionProgram& program = *variant.program;
  const auto reads = [&](std::size_t location) {
    return std::ranges::any_of(program.code, [&](const MicroInstruction& m) {
      return m.a == location || m.b == location || m.c == location;
    });
  };
  const std::size_t inputs = program.inputs.size() - given;
  for (std::size_t v = 0; v < inputs + program.indices.size(); ++v)
    if (v < inputs ? program.used[v + given] : reads(program.first_index() + v - inputs))
      variant.used.push_back(static_cast<std::uint16_t>(v));
  return variant;
}

ScoreKernel::ScoreKernel(const Kernel& kernel, std::size_t given, std::span<const std::int64_t> batch,
                         std::int64_t rows, std::int64_t columns, std::span<const ScoreOperand> operands,
                         std::span<const std::int32_t> scalars)
    : whole_(make_variant(kernel, given)),
      given_(given),
      batch_(batch.begin(), batch.end()),
      operands_(operands.begin(), operands.end()),
      scalars_(scalars.begin(), scalars.end()) {
  tile_ = whole_.program->tile;
  std::size_t element_bytes = whole_.program->element_bytes;
  locations_ = whole_.program->locations();
  comparisons_ = coordinate_comparisons(kernel);
  if (comparisons_.size() > kMostComparisons) comparisons_.clear();
  for (std::uint32_t outcomes = 0; !comparisons_.empty() && outcomes < 1U << comparisons_.size();
       ++outcomes) {
    variants_.push_back(make_variant(decided(kernel, comparisons_, outcomes), given));
    // Nothing is gained where the outcome is used for more than selections.
    if (variants_.back().program->code.size() < whole_.program->code.size()) continue;
    comparisons_.clear();
    variants_.clear();
  }
  for (const Variant& variant : variants_) {
    tile_ = std::min(tile_, variant.program->tile);
    element_bytes = std::max(element_bytes, variant.program->element_bytes);
    locations_ = std::max(locations_, variant.program->locations());
  }
  scalar_expanded_ = whole_.program->expanded_scalars;
  for (const Variant& variant : variants_)
    for (std::size_t i = 0; i < scalar_expanded_.size(); ++i)
      if (variant.program->expanded_scalars[i]) scalar_expanded_[i] = true;
  const std::int64_t points = std::max<std::int64_t>(rows * columns, 1);
  tile_ = std::min(tile_, (points + 15) / 16 * 16);
  // Odd multiples of the cache line keep buffers of a power of two from sharing cache sets.
  buffer_bytes_ = aligned(static_cast<std::size_t>(tile_) * element_bytes) + 64;
  scratch_bytes_ = aligned(2 * locations_ * sizeof(std::byte*)) +
                   aligned(operands_.size() * sizeof(std::int64_t)) +
                   aligned(operands_.size() * 3 * sizeof(std::int64_t)) + locations_ * buffer_bytes_;
}

ScoreRunner::ScoreRunner(const ScoreKernel& kernel, const RunContext& context, std::byte* scratch)
    : kernel_(kernel), context_(context) {
  static_assert(sizeof(Filled) == 3 * sizeof(std::int64_t));
  const std::size_t locations = kernel.locations_;
  const std::size_t operands = kernel.operands_.size();
  pointers_ = reinterpret_cast<std::byte**>(scratch);
  buffers_ = pointers_ + locations;
  scratch += aligned(2 * locations * sizeof(std::byte*));
  elements_ = reinterpret_cast<std::int64_t*>(scratch);
  scratch += aligned(operands * sizeof(std::int64_t));
  filled_ = reinterpret_cast<Filled*>(scratch);
  scratch += aligned(operands * sizeof(Filled));
  std::fill_n(filled_, operands, Filled{});
  for (std::size_t l = 0; l < locations; ++l, scratch += kernel.buffer_bytes_)
    pointers_[l] = buffers_[l] = scratch;
  // Inputs, scalars and index operands have the same locations in all variants.
  const RegionProgram& program = *kernel.whole_.program;
  for (std::size_t i = 0; i < kernel.scalars_.size(); ++i) {
    const std::uint64_t& bits = context.scalars[static_cast<std::size_t>(kernel.scalars_[i])];
    fill_tile(buffers_[program.first_scalar() + i], reinterpret_cast<const std::byte*>(&bits),
              size_of(program.scalars[i]), kernel.scalar_expanded_[i] ? kernel.tile_ : 1);
  }
}

void ScoreRunner::seek(std::int64_t batch) {
  for (std::size_t i = 0; i < kernel_.operands_.size(); ++i) elements_[i] = kernel_.operands_[i].offset;
  for (std::size_t d = kernel_.batch_.size(); d-- > 0;) {
    const std::int64_t at = batch % kernel_.batch_[d];
    batch /= kernel_.batch_[d];
    for (std::size_t i = 0; i < kernel_.operands_.size(); ++i)
      elements_[i] += at * kernel_.operands_[i].batch[d];
  }
}

void ScoreRunner::run(const Block& block, std::span<float* const> given, float* output,
                      std::int64_t leading) {
  const std::int64_t tile = kernel_.tile_;
  float* blocks[2] = {};
  const auto blocks_at = [&](std::int64_t element) -> std::span<float* const> {
    for (std::size_t i = 0; i < given.size(); ++i) blocks[i] = given[i] + element;
    return {blocks, given.size()};
  };
  const std::int64_t points = block.rows * block.columns;
  if (!kernel_.variants_.empty() && block.columns >= kWideRow) {
    std::array<Edge, kMostComparisons> edges{};
    for (std::size_t i = 0; i < kernel_.comparisons_.size(); ++i) edges[i] = edge(kernel_.comparisons_[i]);
    const std::span<const Edge> known(edges.data(), kernel_.comparisons_.size());
    machines_ = {};
    // Rows that no edge crosses are taken together, as many as fit a tile.
    const std::int64_t height =
        leading == block.columns ? std::max<std::int64_t>(tile / block.columns, 1) : 1;
    for (std::int64_t r = 0; r < block.rows; r += height) {
      const Block rows{block.row + r, std::min(height, block.rows - r), block.column, block.columns};
      const auto outcomes = rows.rows > 1 ? outcomes_of(rows, known) : std::nullopt;
      if (outcomes) {
        run_tile(kernel_.variants_[*outcomes], machine_of(*outcomes, points), rows, blocks_at(r * leading),
                 output + r * leading, leading);
        continue;
      }
      for (std::int64_t i = r; i < r + rows.rows; ++i)
        run_row({block.row + i, 1, block.column, block.columns}, known, points, blocks_at(i * leading),
                output + i * leading);
    }
    return;
  }
  const RowFunction machine = machine_for(*kernel_.whole_.program, points);
  const bool dense = leading == block.columns || block.columns < kWideRow;
  const std::int64_t height = dense ? std::max<std::int64_t>(tile / block.columns, 1) : 1;
  for (std::int64_t r = 0; r < block.rows; r += height) {
    for (std::int64_t c = 0; c < block.columns; c += tile) {
      const std::int64_t at = r * leading + c;
      run_tile(kernel_.whole_, machine,
               {block.row + r, std::min(height, block.rows - r), block.column + c,
                std::min(tile, block.columns - c)},
               blocks_at(at), output + at, leading);
    }
  }
}

ScoreRunner::Edge ScoreRunner::edge(const CoordinateComparison& comparison) const {
  Edge edge{comparison.constant, 0, 0};
  const std::size_t first_index = kernel_.operands_.size() - comparison.index_factors.size();
  for (std::size_t i = 0; i < comparison.index_factors.size(); ++i) {
    const ScoreOperand& operand = kernel_.operands_[first_index + i];
    edge.base += comparison.index_factors[i] * elements_[first_index + i];
    edge.row += comparison.index_factors[i] * operand.row;
    edge.column += comparison.index_factors[i] * operand.column;
  }
  for (std::size_t i = 0; i < comparison.scalar_factors.size(); ++i) {
    if (comparison.scalar_factors[i] == 0) continue;
    const std::uint64_t bits = context_.scalars[static_cast<std::size_t>(kernel_.scalars_[i])];
    const bool wide = kernel_.whole_.program->scalars[i] == DType::i64;
    const std::int64_t value =
        wide ? static_cast<std::int64_t>(bits) : static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
    edge.base += comparison.scalar_factors[i] * value;
  }
  return edge;
}

// Linear functions of row and column have their extremes in corners.
std::optional<std::uint32_t> ScoreRunner::outcomes_of(const Block& block, std::span<const Edge> edges) {
  std::uint32_t outcomes = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& e = edges[i];
    const std::int64_t corner = e.base + e.row * block.row + e.column * block.column;
    const std::int64_t down = e.row * (block.rows - 1);
    const std::int64_t right = e.column * (block.columns - 1);
    const std::int64_t least = corner + std::min<std::int64_t>(down, 0) + std::min<std::int64_t>(right, 0);
    const std::int64_t most = corner + std::max<std::int64_t>(down, 0) + std::max<std::int64_t>(right, 0);
    if (least >= 0)
      outcomes |= 1U << i;
    else if (most >= 0)
      return std::nullopt;
  }
  return outcomes;
}

RowFunction ScoreRunner::machine_of(std::uint32_t outcomes, std::int64_t points) {
  Machine& machine = machines_[outcomes];
  if (!machine.is_known) machine = {machine_for(*kernel_.variants_[outcomes].program, points), true};
  return machine.function;
}

/// One row, in spans on each of which all comparisons have one outcome. `points`: of the whole block.
void ScoreRunner::run_row(const Block& row, std::span<const Edge> edges, std::int64_t points,
                          std::span<float* const> given, float* output) {
  const std::int64_t end = row.column + row.columns;
  float* blocks[2] = {};
  for (std::int64_t column = row.column; column < end;) {
    std::uint32_t outcomes = 0;
    std::int64_t next = std::min(end, column + kernel_.tile_);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const Edge& e = edges[i];
      const std::int64_t value = e.base + e.row * row.row + e.column * column;
      if (value >= 0) outcomes |= 1U << i;
      // The next column with the other sign.
      if (value >= 0 && e.column < 0)
        next = std::min(next, column + steps_to(value, -e.column) + 1);
      else if (value < 0 && e.column > 0)
        next = std::min(next, column + steps_to(-value + e.column - 1, e.column));
    }
    const std::int64_t at = column - row.column;
    for (std::size_t i = 0; i < given.size(); ++i) blocks[i] = given[i] + at;
    run_tile(kernel_.variants_[outcomes], machine_of(outcomes, points), {row.row, 1, column, next - column},
             {blocks, given.size()}, output + at, row.columns);
    column = next;
  }
}

void ScoreRunner::place_operands(const ScoreKernel::Variant& variant, const Block& part) {
  const RegionProgram& program = *variant.program;
  const std::size_t inputs = program.inputs.size() - kernel_.given_;
  for (const std::size_t v : variant.used) {
    const ScoreOperand& operand = kernel_.operands_[v];
    const Strided s{part.rows, part.columns, operand.row, operand.column};
    const std::int64_t element = elements_[v] + part.row * s.row + part.column * s.column;
    const Filled wanted{element, part.rows, part.columns};
    if (v >= inputs) {
      if (filled_[v] == wanted) continue;
      const std::size_t index = v - inputs;
      dispatch<is_compute_number>(program.indices[index], [&]<class T>() {
        generate_block<T>(buffers_[program.first_index() + index], element, s);
      });
      filled_[v] = wanted;
      continue;
    }
    const std::size_t location = v + kernel_.given_;
    const std::size_t size = size_of(program.inputs[location]);
    std::byte* from = context_.buffers[static_cast<std::size_t>(operand.buffer)] +
                      element * static_cast<std::int64_t>(size);
    pointers_[location] = s.dense() ? from : buffers_[location];
    if (s.dense() || filled_[v] == wanted) continue;
    load_strided(size, buffers_[location], from, s);
    filled_[v] = wanted;
  }
}

void ScoreRunner::run_tile(const ScoreKernel::Variant& variant, RowFunction machine, const Block& part,
                           std::span<float* const> given, float* output, std::int64_t leading) {
  const RegionProgram& program = *variant.program;
  place_operands(variant, part);
  const Strided s{part.rows, part.columns, leading, 1};
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!program.used[i]) continue;
    pointers_[i] = s.dense() ? reinterpret_cast<std::byte*>(given[i]) : buffers_[i];
    if (!s.dense()) load_block(reinterpret_cast<float*>(buffers_[i]), given[i], s);
  }
  const std::size_t result = program.outputs[0].location;
  const bool direct = program.outputs[0].direct && s.dense();
  if (direct) pointers_[result] = reinterpret_cast<std::byte*>(output);
  const std::int64_t n = part.rows * part.columns;
  if (machine != nullptr)
    machine(pointers_, nullptr, 1, n);
  else
    for (const MicroInstruction& m : program.code)
      m.fn(pointers_[m.out], pointers_[m.a], pointers_[m.b], pointers_[m.c], n);
  pointers_[result] = buffers_[result];  // it may be something else in the next tile's variant
  if (direct) return;
  const auto* from = reinterpret_cast<const float*>(buffers_[result]);
  for (std::int64_t r = 0; r < part.rows; ++r, from += part.columns, output += leading)
    std::copy_n(from, part.columns, output);
}

}  // namespace caldera::cpu
