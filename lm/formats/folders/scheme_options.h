// Which options of a quantization_config are known. Private to lm/formats/.
#pragma once

#include <string_view>

#include "lm/base/json_file.h"

namespace caldera::detail {

/// Throws FileError naming the first option that is not known of the method, unless it is false, zero, null
/// or empty: it may change what the weights are.
void check_scheme_options(std::string_view method, const JsonFields& options);

}  // namespace caldera::detail
