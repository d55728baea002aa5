#include "engine/runtime/workspace.h"

namespace caldera {

void Workspace::finish() {
  constexpr std::size_t kWorthKeeping = std::size_t{1} << 16;
  bool is_huge = outputs.capacity() > kWorthKeeping || passed_by.capacity() > kWorthKeeping;
  for (std::size_t i = 0; i < used; ++i)
    is_huge = is_huge || captures[i].walk.order.capacity() > kWorthKeeping;
  if (is_huge) {
    *this = {};
    return;
  }
  used = 0;
  outputs.clear();
  passed_by.clear();
  ended.clear();
  donors.clear();
  cuts.clear();
  choice.clear();
}

Workspace& workspace() {
  static auto* instance = new Workspace;  // outlives every static tensor
  return *instance;
}

}  // namespace caldera
