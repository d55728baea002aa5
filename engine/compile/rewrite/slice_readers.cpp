#include "engine/compile/rewrite/slice_readers.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

struct Readers {
  std::uint32_t edges = 0;  // uses by slices
  std::int64_t elements = 0;
  std::vector<std::uint32_t> windows;  // a slice for each distinct window
  bool fits = true;
};

bool same_window(const Program::Node& a, const Program::Node& b) {
  return a.shape == b.shape &&
         std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end());
}

}  // namespace

int sliced_axis(const Program& program, std::uint32_t slice) {
  const Program::Node& n = program.nodes[slice];
  const Shape& whole = program.nodes[program.inputs_of(n)[0]].shape;
  const auto rank = static_cast<std::size_t>(n.shape.rank());
  int axis = -1;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto at = static_cast<int>(d);
    if (n.attributes[rank + d] != 1) return -1;
    if (n.shape[at] == whole[at]) continue;
    if (axis >= 0) return -1;
    axis = at;
  }
  return axis;
}

std::unordered_set<std::uint32_t> computed_in_slices(const Program& program,
                                                     const std::vector<std::uint32_t>& uses) {
  std::unordered_map<std::uint32_t, Readers> readers;
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    const Program::Node& n = program.nodes[i];
    if (uses[i] == 0 || n.op->kind != OpClass::slice) continue;
    const std::uint32_t of = program.inputs_of(n)[0];
    if (program.nodes[of].op->kind != OpClass::elementwise) continue;
    Readers& r = readers[of];
    ++r.edges;
    r.fits = r.fits && sliced_axis(program, i) >= 0;
    if (!r.fits || std::any_of(r.windows.begin(), r.windows.end(),
                               [&](std::uint32_t w) { return same_window(program.nodes[w], n); }))
      continue;
    r.windows.push_back(i);
    r.elements += n.shape.numel();
    r.fits = r.windows.size() <= kMaxConcatParts && r.elements <= program.nodes[of].shape.numel();
  }
  std::unordered_set<std::uint32_t> out;
  for (const auto& [of, r] : readers) {
    if (r.fits && r.edges == uses[of]) out.insert(of);
  }
  return out;
}

}  // namespace caldera
