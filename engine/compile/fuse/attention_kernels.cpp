#include "engine/compile/fuse/attention_kernels.h"

#include <vector>

#include "engine/compile/rewrite/attention_patterns.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

RegionKernel expression_kernel(const Regions& regions, Id result, const std::vector<Id>& given) {
  const Patterns match(regions.program());
  const auto e =
      given.size() == 1 ? match.between(result, {given[0]}) : match.between(result, {given[0], given[1]});
  return build_expression_kernel(regions, given, e.value().operations, result);
}

Id attribute(const Regions& regions, std::uint32_t attention, AttentionAttribute which) {
  return static_cast<Id>(regions.node(attention).attributes[which]);
}

}  // namespace

RegionKernel score_kernel(const Regions& regions, std::uint32_t attention) {
  return expression_kernel(regions, attribute(regions, attention, kScore),
                           {attribute(regions, attention, kRaw)});
}

RegionKernel gradient_kernel(const Regions& regions, std::uint32_t attention) {
  return expression_kernel(regions, attribute(regions, attention, kRawGrad),
                           {attribute(regions, attention, kScoreGrad), attribute(regions, attention, kRaw)});
}

}  // namespace caldera
