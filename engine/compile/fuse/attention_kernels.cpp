#include "engine/compile/fuse/attention_kernels.h"

#include <vector>

#include "engine/compile/rewrite/attention_patterns.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

RegionKernel expression_kernel(const Placement& placement, Id result, const std::vector<Id>& given) {
  const Patterns match(placement.program());
  const auto e =
      given.size() == 1 ? match.between(result, {given[0]}) : match.between(result, {given[0], given[1]});
  return build_expression_kernel(placement, given, e.value().operations, result);
}

Id attribute(const Placement& placement, std::uint32_t attention, AttentionAttribute which) {
  return static_cast<Id>(placement.node(attention).attributes[which]);
}

}  // namespace

RegionKernel score_kernel(const Placement& placement, std::uint32_t attention) {
  return expression_kernel(placement, attribute(placement, attention, kScore),
                           {attribute(placement, attention, kRaw)});
}

RegionKernel gradient_kernel(const Placement& placement, std::uint32_t attention) {
  return expression_kernel(
      placement, attribute(placement, attention, kRawGrad),
      {attribute(placement, attention, kScoreGrad), attribute(placement, attention, kRaw)});
}

}  // namespace caldera
