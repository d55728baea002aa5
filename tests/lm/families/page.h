// The page docs/guide/models.md: a table of the families in the registry.
#pragma once

#include <string>

namespace caldera::testing {

/// The page as it must stand in docs/.
std::string models_page();

}  // namespace caldera::testing
