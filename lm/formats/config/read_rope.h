// Reads and writes what config.json says of rotary positions. Private to lm/formats/config/.
#pragma once

#include <string>

#include "lm/formats/config/rope_scaling.h"

namespace caldera::detail {

class JsonFields;

/// Makes the object of `rope_scaling` that says this; not of longrope.
std::string rope_object(const RopeScaling& rope);

/// Reads the object of `field` ("rope_scaling", "rope_parameters") of a config.json into `rope`; its theta
/// stays where the object has none. Throws FileError, naming `field`, for a type that is not known, a field
/// that is missing for the type, not known or out of its domain.
void read_rope_object(const JsonFields& object, const JsonFields& config, const char* field,
                      RopeParameters& rope);

}  // namespace caldera::detail
