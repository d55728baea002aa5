// Keys and values as they are stored: attention reads rows of a table where a gather would have copied them,
// and blocks of q8_0 where they would have been dequantised (StoredKeys).
#include <algorithm>
#include <array>

#include "engine/compile/emit/emitter.h"
#include "engine/compile/emit/row_view.h"

namespace caldera {
namespace {

constexpr std::size_t kKeyOperand = 1, kValueOperand = 2;

}  // namespace

/// How `source` would be read from what its root gathers or dequantises, by an attention whose dimension of
/// keys is `keys` of those of the source, and the dimension of a row `width`.
std::optional<Emitter::StoredRows> Emitter::stored_rows(const Source& source, int keys, int width) const {
  const Program::Node& n = node(source.root);
  StoredRows stored;
  if (n.op->kind == OpClass::gather) {
    const Source table = placement_.operand(source.root, 0);
    if (n.attributes[0] != 0 || n.attributes[1] != 0 || node(table.shape_of).shape.rank() != 2 ||
        !has_own_memory(table) || (n.dtype != DType::f32 && !is_half(n.dtype)))
      return std::nullopt;
    stored.table = table;
    stored.rows = placement_.operand(source.root, 1);
    stored.row_count = n.shape.numel() / n.shape.back();
    stored.columns = n.shape.back();
  } else if (n.op->kind == OpClass::quantized) {
    const QuantizedNode what = QuantizedNode::of(n.attributes);
    const bool takes = what.work == QuantizedWork::take_rows;
    if (what.layout.format != QuantizedFormat::q8_0 || what.is_product() || (takes && what.matrices != 1))
      return std::nullopt;
    stored.table = placement_.operand(source.root, takes ? 1 : 0);
    if (!has_own_memory(stored.table)) return std::nullopt;
    if (takes) stored.rows = placement_.operand(source.root, 0);
    stored.row_count = takes ? n.shape[0] : what.rows;
    stored.columns = what.columns;
    stored.blocks = true;
  } else {
    return std::nullopt;
  }
  const QuantizedFacts& f = facts(QuantizedFormat::q8_0);
  const std::int64_t unit = stored.blocks ? f.block : 1;
  const std::int64_t unit_size = stored.blocks ? f.block_bytes : 1;
  const Shape& extents = node(source.shape_of).shape;
  const auto view = RowView::of(*source.view, extents, stored.row_count, stored.columns);
  if (!view || extents[width] % unit != 0) return std::nullopt;

  // The table as (matrices, rows, elements of a row), those side by side.
  const std::int64_t of_row = stored.columns / unit * unit_size;
  const Shape& own = node(stored.table.shape_of).shape;
  const std::int64_t table_rows = stored.rows ? own.numel() / of_row : stored.row_count;
  const Shape wanted{own.numel() / (table_rows * of_row), table_rows, of_row};
  const auto table = reshape_view(*stored.table.view, own, wanted);
  if (!table || (of_row > 1 && table->strides[2] != 1)) return std::nullopt;
  stored.table_rows = table_rows;
  stored.table_stride = table->strides[1];

  const auto elements = [&](std::int64_t column) { return column / unit * unit_size; };
  stored.view.offset = table->offset + elements(view->first.column);
  stored.view.strides = Dims::filled(extents.rank(), 0);
  stored.row_view.strides = stored.view.strides;
  if (stored.rows) {
    stored.row_view.offset = view->first.row;
  } else {
    stored.view.offset += view->first.matrix * table->strides[0] + view->first.row * table->strides[1];
  }
  for (int d = 0; d < extents.rank(); ++d) {
    const RowPlace& step = view->along[static_cast<std::size_t>(d)];
    const bool along_row = d == width;
    if (along_row ? step.row != 0 || step.matrix != 0 || (extents[d] > 1 && step.column != 1)
                  : step.column % unit != 0)
      return std::nullopt;
    if (d == keys && (step.column != 0 || step.matrix != 0)) return std::nullopt;
    if (stored.rows && step.matrix != 0) return std::nullopt;
    if (stored.rows) {
      stored.row_view.strides[d] = step.row;
      stored.view.strides[d] = along_row ? 1 : elements(step.column);
    } else {
      stored.view.strides[d] =
          along_row ? 1
                    : elements(step.column) + step.matrix * table->strides[0] + step.row * table->strides[1];
    }
  }
  if (view->first.column % unit != 0 || (stored.rows && view->first.matrix != 0)) return std::nullopt;
  return stored;
}

std::optional<Emitter::StoredRows> Emitter::stored_keys(std::uint32_t attention, std::size_t operand) const {
  const int batch = node(attention).shape.rank() - 2;
  const bool is_key = operand == kKeyOperand;
  return stored_rows(placement_.operand(attention, operand), batch + (is_key ? 1 : 0),
                     batch + (is_key ? 0 : 1));
}

/// Whether an attention node may read both as they are stored.
bool Emitter::may_read_stored(std::uint32_t attention) const {
  const DType queries = type_in_memory(placement_.operand(attention, 0));
  const auto k = stored_keys(attention, kKeyOperand), v = stored_keys(attention, kValueOperand);
  if (!k || !v || k->blocks != v->blocks || k->rows.has_value() != v->rows.has_value()) return false;
  const DType type = node(k->table.root).dtype;
  if (node(v->table.root).dtype != type) return false;
  if (queries != DType::f32 && (k->blocks || queries != type)) return false;
  if (!k->rows) return true;
  // One list of rows, walked in one way: along the batch, which comes first, and the keys.
  const int batch = node(attention).shape.rank() - 2;
  const Dims& of_k = k->row_view.strides;
  const Dims& of_v = v->row_view.strides;
  bool alike = k->rows->root == v->rows->root && *k->rows->view == *v->rows->view &&
               k->table_rows == v->table_rows && k->row_view.offset == v->row_view.offset &&
               of_k[batch + 1] == of_v[batch];
  const Shape& of_keys = node(placement_.operand(attention, kKeyOperand).shape_of).shape;
  const Shape& of_values = node(placement_.operand(attention, kValueOperand).shape_of).shape;
  for (int d = 0; d < batch; ++d) alike = alike && of_k[d] == of_v[d] && of_keys[d] == of_values[d];
  return alike;
}

/// Finds the gathers and dequantised values that nobody reads but attention as they are stored.
void Emitter::find_stored_keys() {
  const auto count = static_cast<std::uint32_t>(placement_.program().nodes.size());
  absorbed_.assign(count, false);
  if (!traits_.reads_stored_keys) return;
  std::vector<std::uint32_t> readers;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!placement_.is_live(i) || placement_.source(i).root != i) continue;
    if (node(i).op->kind == OpClass::attention && may_read_stored(i)) readers.push_back(i);
  }
  for (const std::uint32_t i : readers)
    for (const std::size_t k : {kKeyOperand, kValueOperand}) {
      const Source source = placement_.operand(i, k);
      absorbed_[source.root] =
          !placement_.is_output(source.root) && !placement_.is_behind_barrier(source.shape_of);
    }
  // What somebody reads otherwise stays, and so does its partner.
  bool changed = !readers.empty();
  while (changed) {
    changed = false;
    const auto keep = [&](std::uint32_t root) {
      changed = changed || absorbed_[root];
      absorbed_[root] = false;
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!placement_.is_live(i) || placement_.source(i).root != i) continue;
      const bool reads_stored = std::binary_search(readers.begin(), readers.end(), i);
      const std::array<std::uint32_t, 2> pair =
          reads_stored
              ? std::array{placement_.operand(i, kKeyOperand).root, placement_.operand(i, kValueOperand).root}
              : std::array{kNoRoot, kNoRoot};
      for (std::size_t k = 0; k < placement_.operand_count(i); ++k) {
        const std::uint32_t root = placement_.operand(i, k).root;
        if (!reads_stored || (k != kKeyOperand && k != kValueOperand)) keep(root);
      }
      if (reads_stored && absorbed_[pair[0]] != absorbed_[pair[1]])
        for (const std::uint32_t root : pair) keep(root);
    }
  }
}

/// k, v and what says which rows of them are keys, of an attention that reads them as they are stored.
StoredKeys Emitter::add_stored_keys(Step& step, std::uint32_t i) {
  const auto k = stored_keys(i, kKeyOperand), v = stored_keys(i, kValueOperand);
  const int batch = step.dims.rank() - 4;
  const auto add = [&](const StoredRows& rows, int keys, int width) {
    Operand operand{memory(rows.table.root), rows.view.offset, Dims::filled(batch + 4, 0)};
    for (int d = 0; d < batch; ++d) operand.strides[d] = rows.view.strides[d];
    operand.strides[batch + 1] = rows.view.strides[keys];
    operand.strides[width] = 1;
    step.operands.push_back(operand);
  };
  add(*k, batch + 1, batch + 2);
  add(*v, batch, batch + 3);
  for (const std::size_t which : {kKeyOperand, kValueOperand})
    origins_.push_back(node(placement_.operand(i, which).root).origin);
  StoredKeys stored;
  stored.blocks = k->blocks;
  if (!k->rows) return stored;
  stored.rows = k->table_rows;
  stored.key_stride = k->table_stride;
  stored.value_stride = v->table_stride;
  const Placed rows = one_dimensional(*k->rows);
  const std::int64_t apart = rows.view.strides[0];
  Operand operand{rows.buffer, rows.view.offset + k->row_view.offset * apart, Dims::filled(batch + 4, 0)};
  for (int d = 0; d < batch; ++d) operand.strides[d] = k->row_view.strides[d] * apart;
  operand.strides[batch + 1] = k->row_view.strides[batch + 1] * apart;
  step.operands.push_back(operand);
  return stored;
}

}  // namespace caldera
