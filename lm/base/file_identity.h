// Tells files apart without reading all of them.
#pragma once

#include <filesystem>
#include <string>

namespace caldera {

/// Returns a hash of a file, or of the files of a folder (not those of folders in it): of their names, sizes,
/// times of change, and of 64 pieces of each. Throws FileError where they cannot be read.
std::string file_identity(const std::filesystem::path& path);

}  // namespace caldera
