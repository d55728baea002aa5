// data_forms(): all forms that a line of a .jsonl file may have. Private to training/data/.
#pragma once

#include <string>
#include <vector>

#include "training/data/forms/form.h"

namespace caldera::detail {

/// All forms; a row has the first of them that says so.
const std::vector<DataForm>& data_forms();

/// The names of the fields that forms have, each once, in the order of the forms.
std::vector<std::string> data_fields();

}  // namespace caldera::detail
