#include "training/optim/option_check.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera::detail {

void OptionCheck::operator()(bool ok, const char* option, double value, const char* domain) const {
  if (!ok) throw ValueError(fmt::format("{}: {} is {}, but must be {}", owner, option, value, domain));
}

}  // namespace caldera::detail
