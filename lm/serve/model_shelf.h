// ModelShelf: several models by name, of which those that are asked for are in memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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
  /// open (0: any number), the one that was not used for longest is closed, unless it is at work. `log`: told
  /// of that. Throws as LoadedModel, ValueError for a name that is there twice.
  ModelShelf(const Names& models, ModelServerOptions options, std::size_t most);

  std::shared_ptr<Service> find(const std::string& name) override;
  std::vector<std::shared_ptr<Service>> loaded() const override;
  std::vector<std::string> names() const override;

  const LoadedModel& first() const { return *first_; }

 private:
  struct Entry {
    std::string name;
    std::filesystem::path path;
    std::shared_ptr<LoadedModel> model;  // null: not open
    bool opening = false;
    std::uint64_t used = 0;
  };

  ModelServerOptions options_of(const Entry& entry, bool is_first) const;
  void make_room(std::unique_lock<std::mutex>& lock);
  void note(const std::string& line) const;

  ModelServerOptions options_;
  std::size_t most_;
  const LoadedModel* first_ = nullptr;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace caldera::serve
