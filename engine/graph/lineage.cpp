#include "engine/graph/lineage.h"

#include <algorithm>

namespace caldera {

bool Lineage::may_name(std::uint64_t id) const {
  if (id <= unknown) return true;
  const auto found =
      std::lower_bound(marks.begin(), marks.end(), id,
                       [](const Mark& mark, std::uint64_t wanted) { return mark.id > wanted; });
  return found != marks.end() && found->id == id;
}

LineagePtr::LineagePtr(const LineagePtr& other) : lineage_(other.lineage_) {
  if (lineage_ != nullptr) lineage_->refs_.fetch_add(1, std::memory_order_relaxed);
}
void LineagePtr::drop(const Lineage& lineage) {
  if (lineage.refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &lineage;
}

}  // namespace caldera
