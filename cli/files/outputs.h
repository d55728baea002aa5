// Checks output paths before the work begins, so that no work is lost for want of a folder.
#pragma once

#include <filesystem>
#include <vector>

namespace caldera::cli {

/// Throws FileError, naming `flag`, unless `path` is a folder that can be written to or can be created as
/// one, in which each of `files` can be created or replaced. Creates nothing.
void check_output_folder(const std::filesystem::path& path, const std::vector<const char*>& files,
                         const char* flag);

/// Throws FileError, naming `flag`, unless a file can be created, replaced or written to at `path`. Creates
/// nothing.
void check_output_file(const std::filesystem::path& path, const char* flag);

}  // namespace caldera::cli
