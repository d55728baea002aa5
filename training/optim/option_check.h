// OptionCheck: refuses options that are out of their domain. Private to training/optim/.
#pragma once

namespace caldera::detail {

/// `require(momentum >= 0, "momentum", momentum, "at least 0")` throws ValueError, "SGD: momentum is -1, but
/// must be at least 0", unless the first argument is true.
struct OptionCheck {
  const char* owner;  ///< the class whose options they are

  void operator()(bool ok, const char* option, double value, const char* domain) const;
};

}  // namespace caldera::detail
