// HubClient: files of Hugging Face's hub over HTTP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace caldera::serve {

/// A file of a repository.
struct HubFile {
  std::string name;
  std::optional<std::uint64_t> bytes;
  std::string sha256;  ///< of large files; empty: not told
  std::string blob;    ///< the name of its content: that hash, or git's
};

struct HubRevision {
  std::string commit;
  std::vector<HubFile> files;
};

/// Asks one server. Not for several threads at once.
class HubClient {
 public:
  /// `endpoint`: "https://huggingface.co". `token`: sent to that server alone, none where it is empty. Throws
  /// ValueError for an endpoint that is none.
  HubClient(const std::string& endpoint, std::string token);

  /// Lists what a revision has. Throws FileError, which says what the server said.
  HubRevision list(const std::string& repository, const std::string& revision);
  /// Loads a file into `to`, from where an earlier try has left `to` with ".incomplete" behind its name, and
  /// checks its size and hash. `progress` learns of the bytes that are there. Throws FileError.
  void load(const std::string& repository, const HubRevision& revision, const HubFile& file,
            const std::filesystem::path& to, const std::function<void(std::uint64_t)>& progress);

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  using Sink = std::function<bool(int status, const char* data, std::size_t size)>;

  Answer get(const std::string& path, std::uint64_t from, const Sink& sink);

  std::string endpoint_;
  std::string token_;
};

}  // namespace caldera::serve
