#include "engine/distributed/launch.h"

#include <cstdlib>

namespace caldera::distributed {
namespace {

/// The number that a variable holds; -1 without one.
int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoi(text) : -1;
}

}  // namespace

Launch launch_of_environment() {
  struct Source {
    const char *size, *rank, *mpi;
  };
  // Open MPI's mpirun, Hydra's (of MPICH), and srun, which starts either; with PMIx it is Open MPI's way.
  constexpr Source kSources[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "openmpi"},
                                 {"PMI_SIZE", "PMI_RANK", "mpich"},
                                 {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "openmpi"}};
  Launch launch;
  for (const Source& source : kSources) {
    if (number_in(source.size) < 1 || number_in(source.rank) < 0) continue;
    launch = {number_in(source.size), number_in(source.rank), source.mpi};
    break;
  }
  if (const char* named = std::getenv("CALDERA_MPI"); named != nullptr && *named != '\0') launch.mpi = named;
  return launch;
}

}  // namespace caldera::distributed
