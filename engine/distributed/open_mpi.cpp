#include "engine/distributed/open_mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "engine/base/error.h"

namespace caldera::distributed {
namespace {

std::vector<std::string> candidates(const std::string& implementation) {
  if (implementation.find('/') != std::string::npos) return {implementation};
  const std::string file = fmt::format("libcaldera_mpi_{}.so", implementation);
  std::vector<std::string> all;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) all.push_back((self.parent_path() / "../lib" / file).lexically_normal().string());
  all.push_back(file);
  return all;
}

}  // namespace

const CalderaMpi& open_mpi(const std::string& implementation) {
  std::string problem;
  for (const std::string& path : candidates(implementation)) {
    // Global: Open MPI opens parts of itself that look for its symbols.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      if (const char* why = dlerror(); why != nullptr && problem.empty()) problem = why;
      continue;
    }
    const auto entry = reinterpret_cast<CalderaMpiEntry>(dlsym(library, "caldera_mpi"));
    const CalderaMpi* const mpi = entry != nullptr ? entry() : nullptr;
    if (mpi == nullptr || mpi->version != kCalderaMpiVersion)
      throw Error(fmt::format("{}: is of another version of Caldera; build it again", path));
    return *mpi;
  }
  throw Error(fmt::format(
      "cannot open the library for MPI ({}): {}; build Caldera where the development files of that MPI are "
      "(lib{}-dev), or name another with CALDERA_MPI=openmpi|mpich",
      implementation, problem, implementation == "mpich" ? "mpich" : "openmpi"));
}

}  // namespace caldera::distributed
