// ModelShelf: several models by name, of which those that are asked for are in memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lm/serve/loaded_model.h"
#include "lm/serve/service/service_source.h"

namespace caldera::serve {

class ModelShelf : public ServiceSource {
 public:
  using Names = std::vector<std::pair<std::string, std::filesystem::path>>;

  /// Opens the first model. Of the others each is opened when it is asked for, and where more than `most` are
  /// open (0: any number), or there is no memory for one more, the one that was not used for longest is
  /// closed, unless it is at work (then a request waits for a second, and is refused). Throws as LoadedModel,
  /// ValueError for a name that is there twice, and where one alone of several may be open.
  ModelShelf(const Names& models, ModelServerOptions options, std::size_t most);

  std::shared_ptr<Service> find(const std::string& name) override;
  std::vector<std::shared_ptr<Service>> loaded() const override;
  std::vector<std::string> names() const override;

  std::shared_ptr<const LoadedModel> first() const;
  const std::string& first_name() const { return entries_.front().name; }  ///< which does not change

  /// Opens models that are open again where their files have changed, and loads the first one's adapters
  /// again where theirs have. Requests under way go on with what they began with, so that both are in memory
  /// meanwhile. What cannot be opened stays as it was. Returns a sentence for each that changed or could not
  /// be opened. One call at a time.
  std::vector<std::string> reload();

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    std::string name;
    std::filesystem::path path;
    std::shared_ptr<LoadedModel> model;  // null: not open
    std::string identity;                // of the files that it was opened from
    bool opening = false;
    std::uint64_t used = 0;
  };

  ModelServerOptions options_of(const Entry& entry, bool is_first) const;
  bool has_room(std::unique_lock<std::mutex>& lock, Clock::time_point deadline);
  bool close_oldest(std::unique_lock<std::mutex>& lock);
  void note(const std::string& line) const;
  std::string identity_of(const Entry& entry) const;
  void reopen(std::size_t index, std::vector<std::string>& told);
  void reload_adapters(Service& service, std::vector<std::string>& told);

  ModelServerOptions options_;
  std::size_t most_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Entry> entries_;  // whose names and paths do not change
  std::uint64_t clock_ = 0;
  std::map<std::string, std::string> adapter_files_;  // identities by names; of reload()
};

}  // namespace caldera::serve
