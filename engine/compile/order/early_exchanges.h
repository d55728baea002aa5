// Exchanges as early as may be, and what reads them late: they go on while others compute.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Puts exchanges of a queue into the order in which they were made, and the other steps as they are as far
/// as that can be. What fuses or orders steps by the sizes of tensors, which differ between ranks, has no say
/// in it: ranks begin their messages in one order.
void order_exchanges(Plan& plan);

/// Moves each step that exchanges with other ranks behind the last one that it depends on, or behind the
/// exchange before it, and what depends on its result behind all that does not. Steps that give nothing but
/// what exchanges send, such as those that put gradients together, move up like them. So exchanges that do
/// not depend on one another begin before any is waited for. The order of exchanges stays. Steps must have no
/// places in the arena yet, and must not be joined.
void move_exchanges_up(Plan& plan);

}  // namespace caldera
