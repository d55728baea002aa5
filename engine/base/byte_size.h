// Sizes in bytes as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caldera {

/// Reads "512MiB", "1.5 GB", "1048576": a number and a unit out of B, KB, MB, GB, TB (powers of 1000) and
/// KiB, MiB, GiB, TiB (powers of 1024), in any case; without a unit, bytes. Rounded down to whole bytes.
/// `name` is what the text was given for. Throws ValueError for anything else, and for less than one byte.
std::uint64_t parse_bytes(std::string_view text, std::string_view name);

/// Writes a number of bytes as "12.5 KiB", rounded to nearest.
std::string format_bytes(std::int64_t bytes);
/// Writes it rounded up: a limit that is set to what is written is no less than `bytes`.
std::string format_bytes_up(std::int64_t bytes);

}  // namespace caldera
