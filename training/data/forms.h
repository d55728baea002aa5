// data_forms(): all forms that a line of a .jsonl file may have. Private to training/data/.
#pragma once

#include <vector>

#include "training/data/form.h"

namespace caldera::detail {

/// All forms; a line has the first of them that says so.
const std::vector<DataForm>& data_forms();

}  // namespace caldera::detail
