// Following: a product whose epilogue reads another product, point by point, shares that one's dispatch.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Marks steps that may follow the one before them (StepHeader::follows), such as the two products of a gated
/// MLP: the second's epilogue reads the first's results where it writes its own. After steps are joined and
/// before memory is planned, while every buffer has its own memory.
void follow_steps(Plan& plan);

}  // namespace caldera
