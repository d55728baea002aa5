#include "lm/serve/hub/hub_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include "engine/base/error.h"
#include "lm/base/sha256.h"
#include "lm/serve/protocol/fields.h"

namespace caldera::serve {
namespace {

constexpr int kMostRedirects = 5;
constexpr int kTries = 4;
constexpr int kSeconds = 60;  // without a byte
constexpr std::size_t kMostListing = std::size_t{64} << 20;

/// "https://host:port/path", in two.
struct Address {
  std::string site;
  std::string path;
};

std::optional<Address> parse_address(const std::string& url) {
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return std::nullopt;
  const std::size_t slash = std::min(url.find('/', scheme), url.size());
  if (slash == scheme || url.find_first_of(" \r\n@", 0) < slash) return std::nullopt;
  Address address{url.substr(0, slash), url.substr(slash)};
  if (address.path.empty()) address.path = "/";
  return address;
}

/// A name that is a file in its folder and nothing else.
bool is_plain_file(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.size() < 256 && std::ranges::all_of(name, [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7F && c != '/' &&
           c != '\\';
  });
}

bool is_hash(const std::string& text) {
  return text.find_first_not_of("0123456789abcdef") == std::string::npos && text.size() >= 40 &&
         text.size() <= 64;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-_.~/").find(c) != std::string_view::npos;
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string hash_of(const std::filesystem::path& path) {
  Sha256 hash;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hash.add(std::string_view(piece.data(), static_cast<std::size_t>(file.gcount())));
  return hash.hex();
}

}  // namespace

HubClient::HubClient(const std::string& endpoint, std::string token)
    : endpoint_(endpoint), token_(std::move(token)) {
  while (!endpoint_.empty() && endpoint_.back() == '/') endpoint_.pop_back();
  if (!parse_address(endpoint_))
    throw ValueError(fmt::format("'{}' is no address of a hub: https://huggingface.co is one", endpoint));
}

/// Gets what is at a path, where it is moved to as well: there without the token, which is another site's.
HubClient::Answer HubClient::get(const std::string& path, std::uint64_t from, const Sink& sink) {
  std::string url = endpoint_ + path;
  for (int i = 0; i <= kMostRedirects; ++i) {
    const std::optional<Address> address = parse_address(url);
    if (!address)
      throw FileError(fmt::format("{}: moved to '{}', which is no address", path, url.substr(0, 200)));
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
    if (url.starts_with("https:"))
      throw FileError("this build has no TLS: cpp-httplib was built without OpenSSL");
#endif
    httplib::Client client(address->site);
    client.set_connection_timeout(kSeconds);
    client.set_read_timeout(kSeconds);
    client.set_follow_location(false);
    httplib::Headers headers{{"User-Agent", "caldera"}};
    const bool is_own = parse_address(endpoint_)->site == address->site;
    if (is_own && !token_.empty()) headers.emplace("Authorization", "Bearer " + token_);
    if (from > 0) headers.emplace("Range", fmt::format("bytes={}-", from));
    Answer answer;
    std::string location;
    const auto result = client.Get(
        address->path, headers,
        [&](const httplib::Response& response) {
          answer.status = response.status;
          location = response.get_header_value("Location");
          return true;
        },
        [&](const char* data, std::size_t size) {
          if (answer.status == 200 || answer.status == 206) return sink(answer.status, data, size);
          if (answer.body.size() < 4096) answer.body.append(data, std::min<std::size_t>(size, 4096));
          return true;
        });
    if (answer.status >= 300 && answer.status < 400 && !location.empty()) {
      url = location.starts_with('/') ? address->site + location : location;
      continue;
    }
    if (!result && answer.status == 0)
      throw FileError(fmt::format("{}: {}", address->site, httplib::to_string(result.error())));
    if (!result) answer.status = 0;  // it was broken off
    return answer;
  }
  throw FileError(fmt::format("{}{}: moved too often", endpoint_, path));
}

HubRevision HubClient::list(const std::string& repository, const std::string& revision) {
  std::string body;
  const Answer answer =
      get(fmt::format("/api/models/{}/revision/{}?blobs=true", escaped(repository), escaped(revision)), 0,
          [&](int, const char* data, std::size_t size) {
            body.append(data, size);
            return body.size() <= kMostListing;
          });
  if (answer.status == 401 || answer.status == 403)
    throw FileError(fmt::format(
        "{}: {} says that it may not be had ({}); it is private or gated: ask for it there, and set HF_TOKEN",
        repository, endpoint_, answer.status));
  if (answer.status == 404) throw FileError(fmt::format("{}: {} has no such model", repository, endpoint_));
  if (answer.status != 200)
    throw FileError(fmt::format("{}: {} answers {}", repository, endpoint_, answer.status));
  HubRevision result;
  try {
    const Json document = parse_body(body, 32);
    const Fields fields(document);
    result.commit = fields.text("sha").value_or("");
    if (!is_hash(result.commit)) fields.fail("sha", "is no commit");
    const Json* files = fields.list("siblings", 100000);
    if (files == nullptr) fields.fail("siblings", "is missing");
    for (const Json& file : *files) {
      if (!file.is_object()) fields.fail("siblings", "must list objects");
      const Fields entry(file, "siblings[].");
      HubFile found;
      found.name = entry.text("rfilename").value_or("");
      // Folders within, and names that are paths elsewhere, are left alone.
      if (!is_plain_file(found.name)) continue;
      if (const auto bytes = entry.integer("size", 0, std::int64_t{1} << 50))
        found.bytes = static_cast<std::uint64_t>(*bytes);
      found.blob = entry.text("blobId").value_or("");
      if (const Json* large = entry.object("lfs")) {
        found.sha256 = Fields(*large, "siblings[].lfs.").text("sha256").value_or("");
        if (found.sha256.size() != 64 || !is_hash(found.sha256)) entry.fail("lfs", "has no hash");
        found.blob = found.sha256;
      }
      if (!is_hash(found.blob)) found.blob = Sha256().add(result.commit + "/" + found.name).hex();
      result.files.push_back(std::move(found));
    }
  } catch (const ApiError& error) {
    throw FileError(
        fmt::format("{}: {} answers what is no list of files: {}", repository, endpoint_, error.what()));
  }
  return result;
}

void HubClient::load(const std::string& repository, const HubRevision& revision, const HubFile& file,
                     const std::filesystem::path& to, const std::function<void(std::uint64_t)>& progress) {
  std::filesystem::path part = to;
  part += ".incomplete";
  const std::string where = fmt::format("{}/{}", repository, file.name);
  std::string problem;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200 << attempt));
    std::error_code error;
    std::uint64_t there = std::filesystem::exists(part, error) ? std::filesystem::file_size(part, error) : 0;
    if (file.bytes && there > *file.bytes) {
      std::filesystem::remove(part, error);
      there = 0;
    }
    Answer answer;
    if (!file.bytes || there < *file.bytes || there == 0) {
      std::ofstream out;
      const auto sink = [&](int status, const char* data, std::size_t size) {
        if (!out.is_open()) {
          if (status == 200) there = 0;  // all of it, though a part was asked for
          out.open(part, std::ios::binary | (status == 200 ? std::ios::trunc : std::ios::app));
        }
        out.write(data, static_cast<std::streamsize>(size));
        there += size;
        progress(there);
        return out.good() && (!file.bytes || there <= *file.bytes);
      };
      try {
        answer =
            get(fmt::format("/{}/resolve/{}/{}", escaped(repository), revision.commit, escaped(file.name)),
                there, sink);
      } catch (const FileError& failure) {
        problem = failure.what();
        continue;
      }
      if (out.is_open() && !out.good())
        throw FileError(part.string() + ": cannot be written; is the disk full?");
      if (!out.is_open() && answer.status == 200) std::ofstream(part, std::ios::binary | std::ios::trunc);
      out.close();
      if (answer.status == 416) {  // what is there is no beginning of it
        std::filesystem::remove(part, error);
        problem = where + ": the server has less of it than is here";
        continue;
      }
      if (answer.status != 0 && answer.status != 200 && answer.status != 206)
        throw FileError(fmt::format("{}: {} answers {}", where, endpoint_, answer.status));
    }
    there = std::filesystem::exists(part, error) ? std::filesystem::file_size(part, error) : 0;
    if (answer.status == 0 && (!file.bytes || there < *file.bytes) && there > 0 && file.bytes) {
      problem = where + ": the connection was broken off; ask again: what has come is kept";
      continue;
    }
    if (file.bytes && there != *file.bytes) {
      problem = fmt::format("{}: {} bytes have come of {}", where, there, *file.bytes);
      continue;
    }
    if (!file.sha256.empty() && hash_of(part) != file.sha256) {
      std::filesystem::remove(part, error);
      problem = where + ": what has come is not what its hash says";
      continue;
    }
    std::filesystem::rename(part, to, error);
    if (error) throw FileError(fmt::format("{}: {}", to.string(), error.message()));
    return;
  }
  throw FileError(problem);
}

}  // namespace caldera::serve
