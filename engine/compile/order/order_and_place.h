// The order of a plan's steps, the places of its arena buffers, and its barriers: they depend on one another,
// so one pass decides all three.
#pragma once

#include <cstdint>

#include "engine/compile/order/step_graph.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Places the arena buffers of a plan whose steps are in the order that the schedule found, sets the
/// barriers, and then, if there are more of these than depth_of(plan) less one, tries orders with the
/// dispatches side by side and memory planned so that what is reused adds no barrier. Those take more memory,
/// as what runs together is alive together; where it would be more than limits.h allows, the plan stays in
/// the order that it has, and so does one for a device on which `barriers_cost` nothing.
void order_and_place(Plan& plan, bool barriers_cost = true);

/// Places and barriers alone, for the order that the plan has.
void place_in_order(Plan& plan, const StepGraph& graph);

}  // namespace caldera
