// PromptCache: keys and values of prompts in files, for servers that begin again.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lm/base/sha256.h"

namespace caldera {

/// Holds pieces of texts, of so many tokens each, in a folder: a file a piece, named by the hash of the
/// model, of what else its keys depend on, and of all tokens up to the piece's end. A file that is damaged,
/// or of another piece, is removed and counts as absent. Where the files are larger together than they may
/// be, those that were not used for longest go. Several processes may share a folder. May be used from any
/// thread.
class PromptCache {
 public:
  static constexpr std::size_t kPieceTokens = 64;

  /// `identity`: of the model, and of how it is computed. Makes the folder where it is missing. Throws
  /// FileError where that cannot be.
  PromptCache(std::filesystem::path folder, std::string identity, std::uint64_t max_bytes);
  /// Writes what waits.
  ~PromptCache();
  PromptCache(const PromptCache&) = delete;
  PromptCache& operator=(const PromptCache&) = delete;

  /// The names of the whole pieces of a text. `kind` tells apart what has other keys for equal ids.
  std::vector<std::string> pieces_of(const std::string& kind, std::span<const std::int32_t> ids) const;

  bool has(const std::string& piece) const;
  /// Reads a piece; none where it is not there whole, with these ids and so many bytes.
  std::optional<std::vector<std::byte>> load(const std::string& piece, std::span<const std::int32_t> ids,
                                             std::size_t bytes);
  /// Removes a piece, so that it is written again.
  void drop(const std::string& piece);
  /// Writes a piece, later, on a thread of its own. One that comes while too much waits is dropped.
  void save(const std::string& piece, std::span<const std::int32_t> ids, std::vector<std::byte> bytes);
  /// Waits until all that came is written.
  void flush();

  std::uint64_t bytes() const;

 private:
  struct File {
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // the larger, the later
  };
  struct Waiting {
    std::string piece;
    std::vector<std::byte> content;
  };

  std::filesystem::path path_of(const std::string& piece) const;
  void work();
  void write(const Waiting& waiting);
  void forget(const std::string& piece);
  void remove_file(const std::string& piece);
  void make_room();

  std::filesystem::path folder_;
  std::string identity_;
  std::uint64_t max_bytes_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<std::string, File> files_;  // those that wait to be written too
  std::uint64_t bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool writing_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace caldera
