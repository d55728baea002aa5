#include "engine/compile/regions.h"

#include <algorithm>
#include <utility>

#include "engine/compile/simplify.h"

namespace caldera {
namespace {

bool is_movement(OpClass kind) {
  return kind == OpClass::reshape || kind == OpClass::permute || kind == OpClass::slice ||
         kind == OpClass::broadcast;
}

/// Operations whose kernel evaluates an expression per element, so that producers can be absorbed.
bool evaluates_expressions(OpClass kind) {
  return kind == OpClass::elementwise || kind == OpClass::random || kind == OpClass::reduce;
}

bool absorbable(OpClass kind) { return kind == OpClass::elementwise || kind == OpClass::random; }

}  // namespace

Regions::Regions(const Program& program, const CompileOptions& options)
    : program_(&program), representative_(simplify(program)) {
  const std::size_t count = program.nodes.size();
  root_.resize(count);
  view_.resize(count);
  live_.assign(count, false);
  region_.resize(count);
  output_of_.assign(count, -1);
  stored_.assign(count, false);
  members_.resize(count);
  find_views();
  find_outputs_and_live();
  group(options);
}

void Regions::find_views() {
  for (std::uint32_t i = 0; i < program_->nodes.size(); ++i) {
    const Program::Node& n = node(i);
    root_[i] = i;
    if (representative_[i] != i) continue;
    if (!is_movement(n.op->kind)) {
      // Coordinates have no memory: their "strides" give the value itself, and views of them compose like any
      // other.
      view_[i] = n.op->kind == OpClass::index ? View{0, Dims(n.attributes)} : dense_view(n.shape);
      continue;
    }
    const std::uint32_t from = representative_[program_->inputs_of(n)[0]];
    const Shape& shape = node(from).shape;
    const View& view = view_[from];
    root_[i] = root_[from];
    switch (n.op->kind) {
      case OpClass::permute:
        view_[i] = permute_view(view, n.attributes);
        break;
      case OpClass::slice:
        view_[i] = slice_view(view, n.attributes);
        break;
      case OpClass::broadcast:
        view_[i] = broadcast_view(view, shape, n.shape);
        break;
      default: {
        const bool is_scalar = node(root_[from]).op->kind == OpClass::scalar;
        const std::optional<View> reshaped =
            is_scalar ? View{0, Dims::filled(n.shape.rank(), 0)} : reshape_view(view, shape, n.shape);
        if (reshaped) {
          view_[i] = *reshaped;
        } else {
          root_[i] = i;
          view_[i] = dense_view(n.shape);
        }
      }
    }
  }
}

bool Regions::is_copy(std::uint32_t i) const { return root_[i] == i && is_movement(node(i).op->kind); }

Source Regions::source(std::uint32_t i) const {
  const std::uint32_t r = representative_[i];
  return {root_[r], r, &view_[r]};
}

std::vector<Source> Regions::operands(std::uint32_t root) const {
  std::vector<Source> out;
  for (std::uint32_t input : program_->inputs_of(node(root))) out.push_back(source(input));
  return out;
}

void Regions::find_outputs_and_live() {
  for (std::size_t k = 0; k < program_->outputs.size(); ++k) {
    const Source s = source(program_->outputs[k]);
    live_[s.root] = true;
    const bool has_kernel = node(s.root).op->kind != OpClass::data && !is_free(s.root);
    const Shape& shape = node(s.shape_of).shape;
    if (has_kernel && output_of_[s.root] < 0 && is_dense(*s.view, shape) &&
        shape.numel() == node(s.root).shape.numel()) {
      output_of_[s.root] = static_cast<std::int32_t>(k);
    }
    stored_[s.root] = true;
  }
  for (std::uint32_t i = static_cast<std::uint32_t>(program_->nodes.size()); i-- > 0;) {
    if (!live_[i]) continue;
    for (std::uint32_t input : program_->inputs_of(node(i))) live_[source(input).root] = true;
  }
}

void Regions::group(const CompileOptions& options) {
  constexpr std::uint32_t kNone = 0xffffffffU;
  const std::size_t count = program_->nodes.size();
  std::vector<std::uint32_t> wanted_by(count,
                                       kNone);  // the one region that uses a root, while there is only one
  std::vector<std::uint32_t> size(count, 0);
  std::vector<std::vector<Source>> reads(count);  // of each region, distinct
  const auto add_reads_of = [&](const Program::Node& n, std::vector<Source>& to) {
    for (std::uint32_t input : program_->inputs_of(n)) {
      const Source s = source(input);
      // A number is an argument of the kernel, not an operand.
      if (node(s.root).op->kind == OpClass::scalar) continue;
      const bool known = std::any_of(to.begin(), to.end(), [&](const Source& other) {
        return other.root == s.root && *other.view == *s.view;
      });
      if (!known) to.push_back(s);
    }
  };
  for (std::uint32_t i = static_cast<std::uint32_t>(count); i-- > 0;) {
    region_[i] = i;
    if (!live_[i]) continue;
    const Program::Node& n = node(i);
    const std::uint32_t wanted = wanted_by[i];
    if (options.fusion && absorbable(n.op->kind) && !stored_[i] && wanted != kNone &&
        size[wanted] < kMaxRegionNodes) {
      // Absorbing i replaces one operand of the region by those of i.
      std::vector<Source> merged = reads[wanted];
      std::erase_if(merged, [&](const Source& s) { return s.root == i; });
      add_reads_of(n, merged);
      if (merged.size() <= kMaxRegionInputs) {
        region_[i] = wanted;
        reads[wanted] = std::move(merged);
      }
    }
    if (region_[i] == i && evaluates_expressions(n.op->kind)) add_reads_of(n, reads[i]);
    const std::uint32_t region = region_[i];
    ++size[region];
    members_[region].push_back(i);
    const Shape& space = iteration_shape(*this, region);
    for (std::uint32_t input : program_->inputs_of(n)) {
      const Source s = source(input);
      const bool same_space = evaluates_expressions(n.op->kind) && node(s.root).shape == space &&
                              node(s.shape_of).shape == space && is_dense(*s.view, space);
      if (!same_space || (wanted_by[s.root] != kNone && wanted_by[s.root] != region)) {
        stored_[s.root] = true;
      }
      wanted_by[s.root] = region;
    }
  }
  for (auto& members : members_) std::reverse(members.begin(), members.end());
}

const Shape& iteration_shape(const Regions& regions, std::uint32_t root) {
  const Program::Node& n = regions.node(root);
  if (n.op->kind != OpClass::reduce && !regions.is_copy(root)) return n.shape;
  return regions.node(regions.source(regions.program().inputs_of(n)[0]).shape_of).shape;
}

}  // namespace caldera
