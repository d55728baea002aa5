// docs/guide/operations.md, made from the table of operations and from trying each one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace caldera::testing {

/// The whole page. Figures of accuracy are those that tests/ops/accuracy.h declares.
std::string operations_page();
/// Its section on types.
std::string types_section();

/// What an operation is called elsewhere.
struct ForeignName {
  std::string_view elsewhere;
  std::string_view operation;  // in the table, but for the makers of tensors
  std::string_view remark;
};
std::span<const ForeignName> foreign_names();
/// The page's section on them.
std::string names_section();

}  // namespace caldera::testing
