// Opens the library that speaks MPI (mpi/mpi_interface.h).
#pragma once

#include <string>

#include "engine/distributed/mpi/mpi_interface.h"

namespace caldera::distributed {

/// Opens libcaldera_mpi_NAME.so of an implementation, or a library by its path. It stays open. Throws Error
/// that says what is missing.
const CalderaMpi& open_mpi(const std::string& implementation);

}  // namespace caldera::distributed
