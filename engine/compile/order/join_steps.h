// Joining: steps that run the same kernel and do not depend on one another become one dispatch.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Reorders the steps of a plan so that those that can share a dispatch (dispatch_class.h) follow one
/// another, and marks them. A step that waits for others like it runs at the latest where its result is
/// needed by a step that does not wait, and sooner where waiting would keep more memory alive than the order
/// that the plan came in has at its peak and kMaxBytesHeldBack. Before memory is planned.
void join_steps(Plan& plan);

}  // namespace caldera
