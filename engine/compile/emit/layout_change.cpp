#include "engine/compile/emit/layout_change.h"

#include <algorithm>

namespace caldera {
namespace {

bool is_identity(const Step& step) {
  const auto* region = step.if_a<RegionStep>();
  if (region == nullptr || step.operands.size() != 2) return false;
  const Kernel& kernel = *region->kernel;
  return kernel.inputs.size() == 1 && kernel.outputs.size() == 1 && !kernel.reduce &&
         kernel.code.size() == 1 && kernel.code[0].op == ScalarOp::load &&
         kernel.inputs[0] == kernel.outputs[0].type;
}

}  // namespace

std::optional<LayoutChange> LayoutChange::of(const Plan& plan, const Step& step) {
  if (!is_identity(step)) return {};
  LayoutChange change;
  const Operand& read = step.operands[0];
  const Operand& written = step.operands[1];
  if (read.buffer < plan.input_count + plan.output_count || read.offset != 0 || read.position >= 0) return {};
  change.from_ = read.buffer;
  change.to_ = written.buffer;
  change.offset_ = written.offset;
  change.position_ = written.position;
  const PlanBuffer& from = plan.buffers[static_cast<std::size_t>(change.from_)];
  const PlanBuffer& to = plan.buffers[static_cast<std::size_t>(change.to_)];
  if (change.from_ == change.to_ || from.dtype != to.dtype) return {};
  for (int d = 0; d < step.dims.rank(); ++d) {
    if (step.dims[d] != 1)
      change.dims_.push_back({step.dims[d], step.operands[0].strides[d], step.operands[1].strides[d]});
  }
  std::ranges::sort(change.dims_, [](const Dim& a, const Dim& b) { return a.from > b.from; });
  const std::int64_t elements = from.bytes / static_cast<std::int64_t>(size_of(from.dtype));
  if (!change.is_dense(elements, &Dim::from)) return {};
  change.is_whole_ = to.role == BufferRole::arena && from.bytes == to.bytes && written.offset == 0 &&
                     written.position < 0 && change.is_dense(elements, &Dim::to);
  return change;
}

bool LayoutChange::is_dense(std::int64_t elements, std::int64_t Dim::*stride) const {
  std::vector<Dim> dims = dims_;
  std::ranges::sort(dims, {}, stride);
  std::int64_t expected = 1;
  for (const Dim& dim : dims) {
    if (dim.*stride != expected) return false;
    expected *= dim.extent;
  }
  return elements > 0 && expected == elements;
}

std::vector<LayoutChange::Factor> LayoutChange::factors(std::int64_t extent, std::int64_t stride,
                                                        std::vector<std::int64_t>& last) const {
  if (extent == 1 || stride == 0) return {{extent, 0}};
  std::size_t i = 0;
  while (i < dims_.size() && dims_[i].from > stride) ++i;
  if (stride < 0 || i == dims_.size() || stride % dims_[i].from != 0) return {};
  const std::int64_t apart = stride / dims_[i].from;
  std::vector<Factor> found;
  for (std::int64_t left = extent;; --i) {
    const bool goes_on = apart == 1 && left > dims_[i].extent;
    const std::int64_t own = goes_on ? dims_[i].extent : left;
    if (left % own != 0) return {};
    found.insert(found.begin(), {own, apart * dims_[i].to});
    last[i] += apart * (own - 1);
    left /= own;
    if (left == 1) return found;
    if (i == 0) return {};
  }
}

std::optional<LayoutChange::Mapped> LayoutChange::map(const Operand& operand, const Shape& extents) const {
  if (operand.position >= 0 || operand.offset < 0) return {};
  Mapped mapped{.offset = offset_, .dims = {}};
  std::vector<std::int64_t> last;  // coordinates of the farthest element
  std::int64_t rest = operand.offset;
  for (const Dim& dim : dims_) {
    last.push_back(rest / dim.from);
    mapped.offset += last.back() * dim.to;
    rest %= dim.from;
  }
  for (int d = 0; d < extents.rank(); ++d) {
    if (extents[d] == 0) return {};
    std::vector<Factor> own = factors(extents[d], operand.strides[d], last);
    if (own.empty()) return {};
    if (operand.strides[d] == 1 && extents[d] > 1 && own.back().stride != 1) return {};
    mapped.dims.push_back(std::move(own));
  }
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (last[i] >= dims_[i].extent) return {};
  }
  return mapped;
}

}  // namespace caldera
