// Launch: what the environment says of who started this process, mpirun or srun.
#pragma once

#include <string>

namespace caldera::distributed {

struct Launch {
  int size = 1;     ///< processes that were started together
  int rank = 0;     ///< of this one
  std::string mpi;  ///< the implementation that did: "openmpi" or "mpich", or the path of a library
};

/// Reads it from the variables that Open MPI, MPICH and Slurm set. CALDERA_MPI names the implementation, or
/// the path of a libcaldera_mpi_NAME.so.
Launch launch_of_environment();

}  // namespace caldera::distributed
