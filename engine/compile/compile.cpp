#include "engine/compile/compile.h"

#include "engine/compile/emit/emitter.h"
#include "engine/compile/order/hazards.h"
#include "engine/compile/order/join.h"
#include "engine/compile/order/levels.h"
#include "engine/compile/order/memory_plan.h"
#include "engine/compile/order/schedule.h"
#include "engine/compile/rewrite/attention.h"
#include "engine/compile/rewrite/products.h"
#include "engine/compile/rewrite/simplify.h"

namespace caldera {

std::shared_ptr<const Plan> compile(const Program& program, const CompileOptions& options) {
  Program simple = simplify(program, options.fusion);
  if (options.fusion) {
    simple = find_attention(sum_products(simple));
  }
  const Regions regions(simple, options.fusion);
  auto plan = std::make_shared<Plan>(Emitter(regions).run(group(regions, options.fusion)));
  plan->node_count = static_cast<std::int64_t>(program.nodes.size());
  schedule(*plan);
  if (options.fusion) join_steps(*plan);
  plan_memory(*plan);
  plan_barriers(*plan);
  plan_levels(*plan);
  return plan;
}

}  // namespace caldera
