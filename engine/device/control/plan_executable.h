// Plans on a device, whether or not steps of theirs run others: what the runtime calls in place of
// Backend::prepare and Backend::submit.
#pragma once

#include <memory>

#include "engine/device/backend.h"

namespace caldera {

/// Makes `plan` ready. Throws as Backend::prepare does. `backend` must outlive what it gives.
std::unique_ptr<Executable> prepare_plan(Backend& backend, std::shared_ptr<const Plan> plan);

/// Queues one replay of what prepare_plan gave. Throws as Backend::submit does. Where a plan has loops or
/// branches, it returns once they are done: how they go on depends on what the device computes.
Ticket submit_plan(Backend& backend, Executable& executable, const Bindings& bindings);

}  // namespace caldera
