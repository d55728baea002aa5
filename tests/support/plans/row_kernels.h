// The row kernels of the reference, by the names that tests use.
#pragma once

#include "engine/check/reference/row_kernels.h"
#include "tests/support/plans/plan_case.h"
