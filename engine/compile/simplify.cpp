#include "engine/compile/simplify.h"

#include <unordered_map>

#include "engine/tensor/hash.h"

namespace caldera {

std::vector<std::uint32_t> simplify(const Program& program) {
  std::vector<std::uint32_t> representative(program.nodes.size());
  std::unordered_map<Hash128, std::uint32_t> seen;
  seen.reserve(program.nodes.size());
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    const Program::Node& node = program.nodes[i];
    representative[i] = i;
    if (node.op->kind == OpClass::data || node.op->kind == OpClass::scalar) continue;
    const auto inputs = program.inputs_of(node);
    if (node.op->kind == OpClass::identity) {
      representative[i] = representative[inputs[0]];
      continue;
    }
    Hash128 key;
    key.mix(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(node.op)));
    key.mix(static_cast<std::uint64_t>(node.dtype));
    key.mix(static_cast<std::uint64_t>(node.shape.rank()));
    for (std::int64_t extent : node.shape) key.mix(static_cast<std::uint64_t>(extent));
    for (std::int64_t value : node.attributes) key.mix(static_cast<std::uint64_t>(value));
    key.mix(static_cast<std::uint64_t>(inputs.size()));
    for (std::uint32_t input : inputs) key.mix(static_cast<std::uint64_t>(representative[input]));
    representative[i] = seen.try_emplace(key, i).first->second;
  }
  return representative;
}

}  // namespace caldera
