// Runs a plan dispatch by dispatch and compares each with the f64 interpreter (CALDERA_CHECK).
#pragma once

#include <cstdint>
#include <optional>

#include "engine/device/backend.h"

namespace caldera {

/// Does what Backend::submit does and waits for it, one dispatch after the other. Each is compared with what
/// the interpreter makes of the same operands, or only the dispatch of step number `step` where that is
/// given. The steps of loops and branches are compared within the first runs of each body, and then what all
/// turns at once give with what they gave one by one. On a device that computes nothing this is
/// Backend::submit. Nothing else may run on the device, and what the bindings read must be there.
/// `evaluation` is the number that messages give the replay.
///
/// Throws CheckError for the first step that has results beyond their bounds, whose operands and code it has
/// printed to standard error; FailedSteps and OutOfMemoryError as submit and wait do. Where `step` is given,
/// its operands and code are printed even if it is right.
Ticket submit_checked(Backend& backend, Executable& executable, const Bindings& bindings,
                      std::uint64_t evaluation, std::optional<std::uint64_t> step);

}  // namespace caldera
