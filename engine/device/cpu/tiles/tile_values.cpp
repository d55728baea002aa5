#include "engine/device/cpu/tiles/tile_values.h"

#include <algorithm>
#include <utility>

namespace caldera::cpu {

bool is_source(ScalarOp op) {
  return op == ScalarOp::load || op == ScalarOp::load_row || op == ScalarOp::scalar || op == ScalarOp::index;
}

int value_operands(const Instruction& i) { return is_source(i.op) ? 0 : info(i.op).arity; }

TileValues::TileValues(const Kernel& kernel, const TileForm& form, std::vector<DType> indices)
    : kernel_(kernel), code_(kernel.code), form_(form), indices_(std::move(indices)) {
  form_.uniform_inputs.resize(kernel.inputs.size(), false);
  form_.uniform_indices.resize(indices_.size(), false);
  const RowPhases phases = row_phases(kernel);
  const bool has_rows = kernel.has_rows();
  for (const Kernel::Output& output : kernel.outputs) {
    // A value that happens to be uniform here is stored at every point all the same.
    per_row_.push_back(kernel.reduce ? form_.reduces_rows : has_rows && phases.per_row[output.value]);
  }
  classify();
  find_needed();
  count_passes();
}

void TileValues::classify() {
  uniform_.assign(code_.size(), false);
  phase_.assign(code_.size(), 0);
  for (std::size_t v = 0; v < code_.size(); ++v) {
    const Instruction& i = code_[v];
    switch (i.op) {
      case ScalarOp::load:
        uniform_[v] = form_.uniform_inputs[i.a];
        continue;
      case ScalarOp::index:
        uniform_[v] = form_.uniform_indices[i.a];
        continue;
      default:
        break;
    }
    bool uniform = true;
    const auto operands = operands_of(i);
    for (int k = 0; k < value_operands(i); ++k) {
      const std::uint16_t o = operands[static_cast<std::size_t>(k)];
      uniform = uniform && uniform_[o];
      phase_[v] = std::max(phase_[v], phase_[o]);
    }
    uniform_[v] = uniform || is_row_reduction(i.op);
    if (form_.flat) uniform_[v] = i.op == ScalarOp::scalar && in_place(v);
    if (is_row_reduction(i.op)) ++phase_[v];
  }
}

void TileValues::find_needed() {
  needed_.assign(code_.size(), false);
  for (const Kernel::Output& output : kernel_.outputs) needed_[output.value] = true;
  for (std::size_t v = code_.size(); v-- > 0;) {
    if (!needed_[v]) continue;
    const auto operands = operands_of(code_[v]);
    for (int k = 0; k < value_operands(code_[v]); ++k) needed_[operands[static_cast<std::size_t>(k)]] = true;
  }
}

void TileValues::count_passes() {
  int last = 0;
  for (std::size_t v = 0; v < code_.size(); ++v)
    if (needed_[v] && is_row_reduction(code_[v].op)) last = std::max<int>(last, phase_[code_[v].a]);
  for (std::size_t o = 0; o < kernel_.outputs.size(); ++o)
    if (!per_row_[o]) last = std::max<int>(last, phase_[kernel_.outputs[o].value]);
  passes_ = last + 1;
  last_pass_.assign(code_.size(), 0);
  for (int p = 0; p < passes_; ++p) {
    for (std::size_t v : values_of(p)) {
      const auto operands = operands_of(code_[v]);
      for (int k = 0; k < value_operands(code_[v]); ++k)
        last_pass_[operands[static_cast<std::size_t>(k)]] = p;
    }
    for (std::size_t v : roots_of(p)) last_pass_[v] = p;
  }
}

std::vector<std::size_t> TileValues::roots_of(int p) const {
  std::vector<std::size_t> roots;
  for (std::size_t v = 0; v < code_.size(); ++v)
    if (needed_[v] && is_row_reduction(code_[v].op) && phase_[code_[v].a] == p) roots.push_back(code_[v].a);
  if (p == passes_ - 1)
    for (std::size_t o = 0; o < kernel_.outputs.size(); ++o)
      if (kernel_.reduce || !per_row_[o]) roots.push_back(kernel_.outputs[o].value);
  return roots;
}

std::vector<std::size_t> TileValues::values_of(int p) const {
  std::vector<bool> wanted(code_.size(), false);
  if (form_.recompute) {
    for (std::size_t v : roots_of(p)) wanted[v] = true;
    for (std::size_t v = code_.size(); v-- > 0;) {
      if (!wanted[v] || uniform_[v]) continue;
      const auto operands = operands_of(code_[v]);
      for (int k = 0; k < value_operands(code_[v]); ++k) wanted[operands[static_cast<std::size_t>(k)]] = true;
    }
  } else {
    for (std::size_t v = 0; v < code_.size(); ++v) wanted[v] = needed_[v] && phase_[v] == p;
  }
  std::vector<std::size_t> values;
  for (std::size_t v = 0; v < code_.size(); ++v)
    if (wanted[v] && !uniform_[v] && !in_place(v)) values.push_back(v);
  return values;
}

bool TileValues::in_place(std::size_t v) const {
  return is_source(code_[v].op) && source_type(code_[v]) == code_[v].type;
}

DType TileValues::source_type(const Instruction& i) const {
  return i.op == ScalarOp::scalar  ? kernel_.scalars.at(i.a)
         : i.op == ScalarOp::index ? indices_.at(i.a)
                                   : kernel_.inputs.at(i.a);
}

}  // namespace caldera::cpu
