// docs/operations.md, made from the table of operations and from trying each one.
#pragma once

#include <string>

namespace caldera::testing {

/// The whole page. Figures of accuracy are those that tests/ops/accuracy.h declares.
std::string operations_page();
/// Its section on types.
std::string types_section();

}  // namespace caldera::testing
