#include "lm/models/family.h"

#include <cmath>

namespace caldera::detail {

std::optional<double> optional_positive(const JsonFields& fields, const char* field,
                                        std::optional<double> otherwise) {
  const std::optional<double> value = fields.names_field(field) ? fields.number(field) : otherwise;
  if (value && !(*value > 0 && std::isfinite(*value))) fields.fail(field, "must be positive");
  return value;
}

double positive_number(const JsonFields& fields, const char* field, double otherwise) {
  return optional_positive(fields, field, otherwise).value_or(otherwise);
}

}  // namespace caldera::detail
