#include "engine/device/vulkan/steps/kernel_arguments.h"

#include <algorithm>
#include <utility>

namespace caldera::vulkan {

KernelArguments::KernelArguments(const Step& step, Dims extents, std::vector<KernelView> views)
    : step_(step), extents_(extents), views_(std::move(views)) {
  for (const KernelView& v : views_)
    biases_.push_back(v.is_index ? v.operand->offset : bias(extents_, v.strides));
}

void KernelArguments::write_slots(TableWriter& table, std::span<const std::int32_t> scalars) const {
  for (std::size_t k = 0; k < views_.size(); ++k) {
    if (!views_[k].is_index) table.address(*views_[k].operand, biases_[k]);
  }
  for (std::int32_t s : scalars) table.scalar(s);
}

void KernelArguments::write_integers(TableWriter& table) const {
  for (std::size_t k = 0; k < views_.size(); ++k) {
    const KernelView& v = views_[k];
    std::int64_t reach = biases_[k];  // the largest element number
    if (v.is_index || v.access == Access::strided) table.integer(biases_[k], step_);
    for (int d = 0; d < v.strides.rank() && v.access == Access::strided; ++d) {
      table.integer(v.strides[d], step_);
      reach += std::max<std::int64_t>(v.strides[d], 0) * std::max<std::int64_t>(extents_[d] - 1, 0);
    }
    if (!v.is_index) TableWriter::check_fits(reach, step_);
  }
}

Access scalar_or_strided(const Dims& strides) {
  return std::all_of(strides.begin(), strides.end(), [](std::int64_t s) { return s == 0; }) ? Access::scalar
                                                                                            : Access::strided;
}

}  // namespace caldera::vulkan
